"""The backends of the shop: in this process, over HTTP, or in a browser."""
