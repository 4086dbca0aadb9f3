"""brain-proxy as its README starts it. ADDRESS and UPSTREAM come from the environment."""
import os

os.environ["OPENAI_API_BASE"] = os.environ["UPSTREAM"] + "/v1"
os.environ["OPENAI_API_KEY"] = "none"

import uvicorn
from brain_proxy import BrainProxy
from fastapi import FastAPI

proxy = BrainProxy(default_model="openai/m", memory_model="openai/memory", embedding_model="openai/embedding",
                   storage_dir="tenants")
app = FastAPI()
app.include_router(proxy.router, prefix="/v1")
host, port = os.environ["ADDRESS"].rsplit(":", 1)
uvicorn.run(app, host=host, port=int(port), log_level="warning")
