"""Dagster: a job that erases a person from all models. Put it beside `efface_client.py`."""

from dagster import ConfigurableResource, Config, OpExecutionContext, RetryPolicy, job, op

from efface_client import EffaceClient


class EffaceResource(ConfigurableResource):
    """Where the server is, and a token with the scopes erase and audit."""

    url: str
    token: str | None = None

    def client(self):
        return EffaceClient(self.url, self.token)


class ErasureConfig(Config):
    """Whom to erase, and the id of the request, by which a repeated run has no second effect."""

    person: str
    request_id: str


@op(retry_policy=RetryPolicy(max_retries=3, delay=5))
def erase_person(context: OpExecutionContext, config: ErasureConfig, efface: EffaceResource) -> dict:
    answer = efface.client().erase(config.person, key=config.request_id)
    receipts = {model["model"]: model["receipt"]["id"] for model in answer["models"]}
    context.add_output_metadata({"receipts": receipts})
    return receipts


@job
def erase_from_models():
    erase_person()
