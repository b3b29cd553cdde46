"""What every folder uses and what knows neither Gymnasium nor drift: errors in words, files, JSON, lazy imports."""
