"""The linear program over all columns: master, pricing, duals and the bound that they prove."""
