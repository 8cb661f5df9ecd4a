"""The commands that run several methods: compare and experiment."""
