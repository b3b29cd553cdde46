# The shop and runs in a container.
#   docker build -t drift-envs .
#   docker run --rm -p 3000:3000 drift-envs                                      # the shop at http://localhost:3000
#   docker run --rm -v "$PWD/runs:/work/runs" drift-envs drift-agents run glove-quick
FROM python:3.12-slim
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir ".[agents,plots]" \
    && rm -rf /src/build \
    && useradd --create-home --uid 1000 drift \
    && mkdir -p /work/runs \
    && chown -R drift:drift /work
USER drift
WORKDIR /work
# The catalogue that the shop shows is generated once, when the image is built.
RUN python -c "import gymnasium, drift_envs; gymnasium.make('DriftWebShop-v0').reset(seed=0)"
EXPOSE 3000
CMD ["python", "-m", "webshop_server", "serve", "--host", "0.0.0.0", "--port", "3000"]
