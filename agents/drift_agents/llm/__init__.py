"""Language models: messages in, text or JSON by a schema out.

* `base` - the protocol `Model`, and `ask`, which checks an answer against its schema
* `rules` - the offline model: declared rules
* `openai_compatible` - a model of a chat-completions server
* `connection` - a server's address, key and client
* `server_errors` - errors of servers
* `answer_format` - how a form of answer is requested, and how an answer is parsed
* `schema` - the subset of JSON Schema that answers are checked against
* `reask` - repeats a request after an invalid answer, or falls back on rules; stops a run without usable answers
* `budget` - prices, budgets and meters
* `cache` - the file of recorded replies
* `template` - prompts in text files
* `service` - all models of a run, with recorded replies and a budget
"""
