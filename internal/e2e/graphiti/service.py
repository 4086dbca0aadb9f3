"""The real graphiti-core behind the calls of Graphiti's REST service, and behind
the tools of its MCP server.

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
from typing import Any, Literal

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
from graphiti_core.nodes import EpisodeType, EpisodicNode, Node
from graphiti_core.search.search_config_recipes import NODE_HYBRID_SEARCH_RRF
from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

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


class Success(TypedDict):
    message: str


class Failure(TypedDict):
    error: str


class Facts(TypedDict):
    message: str
    facts: list[dict[str, Any]]


class Nodes(TypedDict):
    message: str
    nodes: list[dict[str, Any]]


class Episodes(TypedDict):
    message: str
    episodes: list[dict[str, Any]]


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
        self.background: list[asyncio.Task] = []  # kept, or they are collected
        self.stopping = False

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
    service.tools = build_tools(service)
    tools_app = service.tools.streamable_http_app()

    @asynccontextmanager
    async def lifespan(_: FastAPI):
        await service.prepare(new)
        worker = asyncio.create_task(service.work())
        worker.add_done_callback(mourn)
        print(f"listening on http://127.0.0.1:{port}", flush=True)
        async with service.tools.session_manager.run():
            yield
        service.stopping = True
        worker.cancel()
        for task in service.background:
            task.cancel()
        # A library may swallow the end of a task: then it ends with its message.
        await asyncio.wait([worker, *service.background], timeout=10)
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

    @app.get("/health")
    async def health():
        return {"status": "healthy", "service": "graphiti-mcp"}

    add_model(app)
    app.router.routes.extend(tools_app.routes)
    return app


def build_tools(service: Service) -> FastMCP:
    """The tools of Graphiti's MCP server that a client of ours may use, with
    their parameters. Each group has a queue of its own, and an exception ends
    one message only, as it is there."""
    mcp = FastMCP("Graphiti Agent Memory")
    queues: dict[str, asyncio.Queue] = {}

    async def work(group: str):
        while not service.stopping:
            episode = await queues[group].get()
            try:
                await service.graphiti.add_episode(group_id=group, source=EpisodeType.message, **episode)
            except Exception:
                traceback.print_exc()

    @mcp.tool()
    async def add_memory(
        name: str, episode_body: str, group_id: str | None = None, source: str = "text", source_description: str = "",
        uuid: str | None = None, reference_time: str | None = None,
    ) -> Success | Failure:
        try:
            at = datetime.fromisoformat(reference_time) if reference_time else datetime.now(timezone.utc)
        except ValueError as e:
            return Failure(error=f"Invalid reference_time: {e}")
        if group_id not in queues:
            queues[group_id] = asyncio.Queue()
            service.background.append(asyncio.create_task(work(group_id)))
        await queues[group_id].put(dict(name=name, episode_body=episode_body, source_description=source_description, uuid=uuid, reference_time=at))
        return Success(message=f"Episode '{name}' queued for processing in group '{group_id}'")

    @mcp.tool()
    async def search_memory_facts(query: str, group_ids: str | list[str] | None = None, max_facts: int = 10) -> Facts | Failure:
        edges = await service.graphiti.search(group_ids=as_list(group_ids), query=query, num_results=max_facts)
        return Facts(message="Facts retrieved successfully", facts=[e.model_dump(mode="json", exclude={"fact_embedding"}) for e in edges])

    @mcp.tool()
    async def search_nodes(query: str, group_ids: str | list[str] | None = None, max_nodes: int = 10) -> Nodes | Failure:
        found = await service.graphiti.search_(query=query, config=NODE_HYBRID_SEARCH_RRF, group_ids=as_list(group_ids))
        fields = {"uuid", "name", "labels", "created_at", "summary", "group_id"}
        return Nodes(message="Nodes retrieved successfully", nodes=[n.model_dump(mode="json", include=fields) for n in found.nodes[:max_nodes]])

    @mcp.tool()
    async def get_episodes(group_ids: str | list[str] | None = None, max_episodes: int = 10) -> Episodes | Failure:
        found = await EpisodicNode.get_by_group_ids(service.driver, as_list(group_ids), limit=max_episodes)
        fields = {"uuid", "name", "content", "created_at", "source", "source_description", "group_id"}
        return Episodes(message="Episodes retrieved successfully", episodes=[e.model_dump(mode="json", include=fields) for e in found])

    @mcp.tool()
    async def clear_graph(group_ids: str | list[str] | None = None) -> Success | Failure:
        for group in as_list(group_ids):
            await Node.delete_by_group_id(service.driver, group)
        return Success(message="Graph data cleared successfully")

    return mcp


def as_list(groups: str | list[str] | None) -> list[str]:
    return [groups] if isinstance(groups, str) else groups or []


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


class Refusals(BaseModel):
    """The statuses that the model answers with instead, or 0."""
    complete: int = 0
    embed: int = 0


refusals = Refusals()


def refuse(status: int):
    if status:
        raise HTTPException(status, "the stand-in model was told to refuse")


def extract(schema: str, prompt: str) -> dict:
    refuse(refusals.complete)
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
    @app.post("/model/refusals", include_in_schema=False)
    async def set_refusals(r: Refusals):
        refusals.complete, refusals.embed = r.complete, r.embed

    @app.post("/model/chat/completions", include_in_schema=False)
    async def complete(request: Request):
        body = await request.json()
        schema = body["response_format"].get("json_schema", {}).get("name", "")
        answer = extract(schema, body["messages"][-1]["content"])
        return {
            "id": "x", "object": "chat.completion", "created": 0, "model": "stand-in",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(answer)}}],
        }

    @app.post("/model/responses", include_in_schema=False)  # what Graphiti's own servers ask
    async def respond(request: Request):
        body = await request.json()
        answer = extract(body["text"]["format"]["name"], body["input"][-1]["content"])
        return {
            "id": "x", "object": "response", "created_at": 0, "model": "stand-in", "status": "completed",
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
            "output": [{
                "id": "x", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": json.dumps(answer), "annotations": []}],
            }],
        }

    @app.post("/model/embeddings", include_in_schema=False)
    async def embeddings(request: Request):
        refuse(refusals.embed)
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
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3))
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main()
