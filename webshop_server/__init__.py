"""A local clone of WebShop: catalogue, search, rewards, page model and a Flask server."""
