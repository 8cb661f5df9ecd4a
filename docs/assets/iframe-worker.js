// The search runs in a worker, which a browser does not start from a file. Where the pages are read as
// files, the script of the worker runs in a frame of its own instead, and messages go to and fro.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...addresses) => Promise.all(addresses.map(one => this.load(one)));
      this.ready = this.load(url);
    }

    load(url) {
      const script = this.frame.contentDocument.createElement("script");
      return new Promise((loaded, failed) => {
        script.src = url;
        script.onload = loaded;
        script.onerror = () => failed(new Error(`cannot load ${url}`));
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      const { contentWindow } = this.frame;
      this.ready.then(() => contentWindow.dispatchEvent(new contentWindow.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
