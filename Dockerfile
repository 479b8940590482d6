# JupyterLab with all that the book was made with: the pinned versions, on the Python that is tested.
#
#     docker build -t fedlib . && docker run --rm -p 8888:8888 fedlib
#
# then open the address that it prints. Binder builds the same file.
FROM python:3.11-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*

ARG NB_USER=reader
ARG NB_UID=1000
ENV USER=${NB_USER} HOME=/home/${NB_USER} OMP_NUM_THREADS=1
RUN useradd --create-home --uid ${NB_UID} ${NB_USER}

WORKDIR ${HOME}/fedlib
COPY --chown=${NB_UID} . .
RUN pip install --no-cache-dir -c constraints.txt pip \
    && pip install --no-cache-dir -c constraints.txt -e . -e ./papers --group book --group lab \
        notebook jupyterhub \
    && chown ${NB_UID} . papers

USER ${NB_USER}
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--notebook-dir=notebooks"]
