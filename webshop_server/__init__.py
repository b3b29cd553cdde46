"""A local clone of WebShop (Yao et al., 2022): catalogue, search, goals, score, and a web server.

It knows neither Gymnasium nor drifts: an operator changes its settings while it runs. By subject:

1. `product`, `catalogue`, `urls` - the records and their file; addresses
2. `search`, `index_builder`, `index`, `record`, `json_stream`, `importer`, `generate`, `progress`, `goals` - results,
   catalogues, tasks
3. `settings`, `inventory`, `reward`, `page_model`, `page_builder`, `renderer`, `shop` - the score, pages, the session
4. `oracle` - optimal purchases, which agents cannot read
5. `sessions`, `shared_sessions`, `routes`, `compat`, `app`, `client`, `__main__` - the web server, the original's
   interfaces, the command
"""
