"""The real graphiti-core behind the calls of Graphiti's REST service.

A fixture of the end-to-end tests. The graph is real (Kuzu, in this process),
and so is everything that graphiti-core does; only the model is a stand-in,
which answers with valid extractions under /model. The worker is as frail as
that of the real service: one, with its queue in memory, and the first
exception ends it while messages go on being accepted.
"""

import argparse
import asyncio
import json
import os
import re
import socket
import traceback
import zlib
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from typing import Literal

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
os.environ["OPENAI_API_KEY"] = "none"  # its reranker asks for one, and is not called

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from graphiti_core import Graphiti
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType, Node
from pydantic import BaseModel, Field

DIMENSIONS = 256


class Message(BaseModel):
    content: str
    uuid: str | None = None
    name: str = ""
    role_type: Literal["user", "assistant", "system"]
    role: str | None  # required, and may be null
    timestamp: datetime = Field(default_factory=lambda: datetime.now(timezone.utc))
    source_description: str = ""


class Messages(BaseModel):
    group_id: str
    messages: list[Message]


class Query(BaseModel):
    group_ids: list[str] | None = None
    query: str
    max_facts: int = 10


class Service:
    """Graphiti, and the worker that feeds it."""

    def __init__(self, db: str, port: int):
        model = f"http://127.0.0.1:{port}/model"
        self.driver = KuzuDriver(db=db)
        self.driver._database = ""  # graphiti-core 0.31 asks Kuzu's driver for one, and it has none
        self.graphiti = Graphiti(
            graph_driver=self.driver,
            llm_client=OpenAIGenericClient(LLMConfig(api_key="none", base_url=model, model="stand-in", small_model="stand-in")),
            embedder=OpenAIEmbedder(OpenAIEmbedderConfig(api_key="none", base_url=model, embedding_dim=DIMENSIONS)),
        )
        self.queue: asyncio.Queue = asyncio.Queue()

    async def prepare(self, new: bool):
        await self.graphiti.build_indices_and_constraints()
        for query in get_fulltext_indices(GraphProvider.KUZU) if new else []:
            await self.driver.execute_query(query)  # graphiti-core leaves these to others

    async def finish(self):
        # Kuzu 0.11 cannot replay its log into a full-text index.
        await self.driver.execute_query("CHECKPOINT")

    async def work(self):
        while True:
            group, m = await self.queue.get()
            await self.graphiti.add_episode(
                uuid=m.uuid,
                group_id=group,
                name=m.name,
                episode_body=f"{m.role or ''}({m.role_type}): {m.content}",
                reference_time=m.timestamp,
                source=EpisodeType.message,
                source_description=m.source_description,
            )


def mourn(worker: asyncio.Task):
    """The real service says nothing of this; a test's log may."""
    if not worker.cancelled():
        traceback.print_exception(worker.exception())


def build(db: str, port: int) -> FastAPI:
    new = not os.path.exists(db)
    service = Service(db, port)

    @asynccontextmanager
    async def lifespan(_: FastAPI):
        await service.prepare(new)
        worker = asyncio.create_task(service.work())
        worker.add_done_callback(mourn)
        print(f"listening on http://127.0.0.1:{port}", flush=True)
        yield
        worker.cancel()
        await asyncio.wait([worker])
        await service.finish()  # what waits in the queue is lost

    app = FastAPI(lifespan=lifespan)

    @app.get("/healthcheck")
    async def healthcheck():
        return {"status": "healthy"}

    @app.post("/messages", status_code=202)
    async def messages(request: Messages):
        for m in request.messages:
            await service.queue.put((request.group_id, m))
        return {"message": "Messages added to processing queue", "success": True}

    @app.post("/search")
    async def search(q: Query):
        edges = await service.graphiti.search(group_ids=q.group_ids, query=q.query, num_results=q.max_facts)
        fields = "uuid name fact valid_at invalid_at created_at expired_at source_node_uuid target_node_uuid episodes".split()
        return {"facts": [{f: getattr(e, f) for f in fields} for e in edges]}

    @app.get("/episodes/{group_id}")
    async def episodes(group_id: str, last_n: int):
        return await service.graphiti.retrieve_episodes(
            group_ids=[group_id], last_n=last_n, reference_time=datetime.now(timezone.utc)
        )

    @app.delete("/group/{group_id}")
    async def forget(group_id: str):
        await Node.delete_by_group_id(service.driver, group_id)
        return {"message": "Group deleted", "success": True}

    add_model(app)
    return app


# --- the stand-in model -----------------------------------------------------


def section(prompt: str, name: str) -> str:
    """The last section of a prompt with that name, however it is spelt."""
    found = re.findall(rf"<{name}>\s*(.*?)\s*</{name}>", prompt.replace("_", " "), re.S)
    return found[-1] if found else ""


def entities(message: str) -> list[str]:
    """Who speaks, and what begins with a capital letter."""
    speaker, _, said = message.partition("): ")
    who = "Assistant" if "(assistant" in speaker else "User"
    names = re.findall(r"\b[A-Z][a-z]{2,}\b", said)
    return list(dict.fromkeys([who, *names, "Conversation"]))


def extract(schema: str, prompt: str) -> dict:
    message = section(prompt, "CURRENT MESSAGE")
    if "[[raise]]" in message:
        raise HTTPException(400, "the stand-in model was told to fail")
    said = message.partition("): ")[2] or message
    match schema:
        case "ExtractedEntities":
            return {"extracted_entities": [{"name": n, "entity_type_id": 0, "episode_indices": [0]} for n in entities(message)]}
        case "ExtractedEdges":
            names = entities(message)
            return {
                "edges": [{
                    "source_entity_name": names[0], "target_entity_name": names[1], "relation_type": "SAID",
                    "fact": said[:500], "valid_at": None, "invalid_at": None, "episode_indices": [0],
                }]
            }
        case "NodeResolutions":
            count = int(re.search(r"ENTITIES contains (\d+) entities", prompt).group(1))
            return {"entity_resolutions": [{"id": i, "name": "", "duplicate_candidate_id": -1} for i in range(count)]}
        case "EdgeDuplicate":
            return {"duplicate_facts": [], "contradicted_facts": []}
        case "EdgeTimestamps":
            return {"valid_at": None, "invalid_at": None}
        case "SummarizedEntities":
            return {"summaries": []}
        case "EntitySummary" | "Summary":
            return {"summary": said[:200]}
    raise HTTPException(400, f"the stand-in model does not know {schema}")


def embed(text: str) -> list[float]:
    """Texts that share words are near each other."""
    v = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        v[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    length = sum(x * x for x in v) ** 0.5 or 1.0
    return [x / length for x in v]


def add_model(app: FastAPI):
    @app.post("/model/chat/completions", include_in_schema=False)
    async def complete(request: Request):
        body = await request.json()
        schema = body["response_format"].get("json_schema", {}).get("name", "")
        answer = extract(schema, body["messages"][-1]["content"])
        return {
            "id": "x", "object": "chat.completion", "created": 0, "model": "stand-in",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(answer)}}],
        }

    @app.post("/model/embeddings", include_in_schema=False)
    async def embeddings(request: Request):
        texts = (await request.json())["input"]
        texts = [texts] if isinstance(texts, str) else texts
        return {
            "object": "list", "model": "stand-in", "usage": {"prompt_tokens": 0, "total_tokens": 0},
            "data": [{"object": "embedding", "index": i, "embedding": embed(t)} for i, t in enumerate(texts)],
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--db", default=":memory:", help="the graph's file")
    args = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", args.port))
    app = build(args.db, listener.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main()
