"""Language models: messages in, text or JSON by a schema out.

`service` makes the models of a run, each of them `openai_compatible`: `answer_format` says how an answer is requested
and read, `connection` speaks to the server, and `server_errors` reads what is no reply. `reask` repeats a request after
an invalid answer.
"""
