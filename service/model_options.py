"""Model options: how a model is named on the command line."""

from __future__ import annotations

import argparse
import os

from .served_model import ServedModel, serve

URL_VARIABLE, NAME_VARIABLE, KEY_VARIABLE = "CALLBOARD_MODEL_URL", "CALLBOARD_MODEL", "CALLBOARD_API_KEY"
"""The environment variables that name a chat's model where the options do not."""


def add_model_options(command: argparse.ArgumentParser) -> None:
    """Lets a model be named."""
    command.add_argument("--model-url", metavar="URL", help="a server of models, such as http://localhost:8000/v1")
    command.add_argument("--model", metavar="NAME", help="the model's name there")
    command.add_argument("--api-key-env", metavar="VAR", help="the environment variable that holds the API key")


def model_named(options: argparse.Namespace) -> ServedModel | None:
    """The model that the options name, or None; exits with 2 for options that do not belong together."""
    if not options.model_url:
        if options.model or options.api_key_env:
            options.parser.error("--model and --api-key-env need --model-url")
        return None
    if not options.model:
        options.parser.error("--model-url needs --model, the name of the model")
    if options.api_key_env and not os.environ.get(options.api_key_env):
        options.parser.error(f"--api-key-env: the environment variable {options.api_key_env} is not set")
    key = os.environ[options.api_key_env] if options.api_key_env else None
    try:
        served = serve("openai", {"base_url": options.model_url, "name": options.model, "api_key": key})
    except ValueError as error:
        options.parser.error(f"--model-url: {error}")
    return served


def complete_from_environment(options: argparse.Namespace) -> None:
    """Lets the environment stand in for the options that are not given."""
    options.model_url = options.model_url or os.environ.get(URL_VARIABLE)
    options.model = options.model or os.environ.get(NAME_VARIABLE)
