"""Language models: messages in, text or JSON by a schema out.

* `base` - the protocol `Model`, and `ask`, which checks an answer against its schema
* `rules`, `scripted` - offline models: declared rules, and answers from a list
* `openai_compatible` - one exchange with a chat-completions server
* `connection` - one pool of HTTP connections
* `request_parameters` - parameters that a server refuses
* `constraint` - grammars, choices and log-probabilities, by which servers restrict answers
* `answer_format` - how a form of answer is requested, and how an answer is parsed
* `schema` - the subset of JSON Schema that answers are checked against
* `reask` - repeats a request after an invalid answer, or falls back on rules
* `monitor` - stops a run whose answers are not usable
* `retry`, `rate_limit`, `circuit_breaker` - retries, and the limits on requests to a server; `wait_clock`, their time
* `budget` - prices, budgets and meters
* `cache` - recorded replies
* `template` - prompts in text files
* `service` - all models of a run, with everything that they share
"""
