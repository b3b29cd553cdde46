"""A service desk: tools that read and write a shop's database, a policy page, requests in words."""
