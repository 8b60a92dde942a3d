"""Apache Airflow 3: a task that erases the persons of a day from all models.

Put this file beside `efface_client.py` in the folder of your DAGs. The server and the token come from the environment of the workers
(or a secrets backend); the ids of the requests make repeated runs harmless.
"""

import os

from airflow.sdk import dag, task

from efface_client import EffaceClient


@task(retries=3)
def erase_person(person, request_id):
    """Erases a person; returns the receipts, by model. Takes the id of the request, so that a retry has no second effect."""
    client = EffaceClient(os.environ["EFFACE_URL"], os.environ.get("EFFACE_TOKEN"))
    answer = client.erase(person, key=request_id)
    return {model["model"]: model["receipt"]["id"] for model in answer["models"]}


@dag(schedule=None, catchup=False, params={"person": "", "request_id": ""})
def erase_from_models():
    """One run for each request: `airflow dags trigger erase_from_models -c '{"person": …, "request_id": …}'`."""
    erase_person("{{ params.person }}", "{{ params.request_id }}")


erase_from_models()
