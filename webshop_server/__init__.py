"""A local clone of WebShop (Yao et al., 2022): catalogue, search, goals, score, and a web server.

From bottom to top; each row imports only from rows above it in this list:

1. `errors`, `checks`, `product`, `vocabulary` - records and argument checks
2. `catalogue`, `generate`, `jsonstream`, `importer` - the catalogue file
3. `search`, `goals`, `settings`, `inventory`, `reward` - results, goals, settings and the score
4. `urls`, `page_model`, `page_builder`, `action`, `shop` - pages, actions and the session
5. `oracle` - optimal purchases; `renderer`, `parser` - HTML from and to page models
6. `sessions`, `shared_sessions`, `routes`, `app`, `serving`, `client`, `__main__` - the web server
"""
