"""A web shop: advertisements, meanings of colour words, labels, order, prices, stock, lost actions."""
