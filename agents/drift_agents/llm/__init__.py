"""Language models: messages in, text or JSON by a schema out.

* `base` - the protocol `Model`, and `ask`, which checks an answer against its schema
* `rules`, `scripted` - offline models: declared rules, and answers from a list
* `openai_compatible` - a model of a chat-completions server
* `connection` - a server's address, key and client
* `http_client` - what of a server's behaviour does not reach the package `openai`
* `server_replies`, `server_errors` - replies and errors of servers
* `answer_format` - how a form of answer is requested, and how an answer is parsed
* `schema` - the subset of JSON Schema that answers are checked against
* `reask` - repeats a request after an invalid answer, or falls back on rules; stops a run without usable answers
* `budget` - prices, budgets and meters
* `cache` - the file of recorded replies
* `template` - prompts in text files
* `service` - all models of a run, with recorded replies and a budget
"""
