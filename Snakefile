# The runs that are not stored, a group of runs a job: `make runs`, or with snakemake's own options
#
#     snakemake --cores 4 --keep-going --config study=cmoo_pairs profile=paper
#     snakemake --dry-run                                        # what there is to do, and its cost
#     snakemake --executor slurm --jobs 50 --default-resources slurm_partition=PARTITION
#
# Killed, it goes on: a run from its checkpoint, a group from the runs that are stored.
import json
import os
import subprocess
import sys
from pathlib import Path

PYTHON = config.get("python", sys.executable)
PROFILE = config.get("profile", "paper")
STUDY = config.get("study", "all")
listing = [PYTHON, "-m", "papers", "runs", STUDY, "--profile", PROFILE, "--json"]
JOBS = {job["name"]: job for job in json.loads(subprocess.check_output(listing))}
# Studies with runs that lie in no study's file yet: killed before their numbers were derived.
FOLDERS = Path(os.environ.get("FEDLIB_RESULTS", "results")).glob(f"*/{PROFILE}")
LEFT = {folder.parent.name for folder in FOLDERS if STUDY in ("all", folder.parent.name)}
STUDIES = sorted(LEFT.union(job["study"] for job in JOBS.values()))
DONE = "_build/runs/" + PROFILE
# What is stored decides, not that it once was.
for name in [*(f"{name}.group" for name in JOBS), *(f"{study}.numbers" for study in STUDIES)]:
    Path(DONE, name).unlink(missing_ok=True)


rule all:
    input:
        expand(DONE + "/{study}.numbers", study=STUDIES),


rule group:
    output:
        touch(DONE + "/{name}.group"),
    params:
        study=lambda wildcards: JOBS[wildcards.name]["study"],
        runs=lambda wildcards: JOBS[wildcards.name]["runs"],
    resources:
        runtime=lambda wildcards: 60 + JOBS[wildcards.name]["seconds"] // 20,
        mem_mb=4000,
    message:
        "{wildcards.name}, about {resources.runtime} minutes at most"
    shell:
        "OMP_NUM_THREADS=1 {PYTHON} -m papers reproduce {params.study} --profile {PROFILE} "
        "--missing --device cpu --runs-only --runs '{params.runs}'"


rule numbers:
    input:
        lambda wildcards: [
            f"{DONE}/{name}.group" for name, job in JOBS.items() if job["study"] == wildcards.study
        ],
    output:
        touch(DONE + "/{study}.numbers"),
    shell:
        "{PYTHON} -m papers reproduce {wildcards.study} --profile {PROFILE} --numbers-only"
