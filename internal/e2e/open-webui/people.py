"""Ten people of Open WebUI, at once, as its pages would: each tells the name of a cat in one
chat, then asks for it in another. Prints a line of JSON for each person."""

import asyncio
import json
import sys
import time
import uuid

import aiohttp
import socketio

BASE, MODEL = sys.argv[1], sys.argv[2]
NAMES = sys.argv[3:]


class Person:
    def __init__(self, http, account, name):
        self.http, self.name = http, name
        self.headers = {"Authorization": "Bearer " + account["token"]}
        self.account = account
        self.socket = socketio.AsyncClient()
        self.ended = set()
        self.socket.on("events", self.event)

    async def event(self, message, *_):
        data = message.get("data") or {}
        if data.get("type") == "chat:completion" and (data.get("data") or {}).get("done"):
            self.ended.add(message.get("message_id"))

    async def connect(self):
        auth = {"token": self.account["token"]}
        await self.socket.connect(BASE, socketio_path="/ws/socket.io", auth=auth, transports=["websocket"])
        await self.socket.emit("user-join", {"auth": auth})

    async def say(self, text):
        """Says a text in a new chat and returns the answer, as the chat has it."""
        asked, answer = str(uuid.uuid4()), str(uuid.uuid4())
        tasks = {"title_generation": True, "tags_generation": True, "follow_up_generation": True}
        message = {"id": asked, "parentId": None, "childrenIds": [], "role": "user", "content": text, "timestamp": int(time.time()), "models": [MODEL]}
        chat = await post(self.http, "/api/chat/completions", {
            "model": MODEL, "stream": True, "messages": [{"role": "user", "content": text}], "session_id": self.socket.get_sid(),
            "id": answer, "parent_id": None, "user_message": message, "background_tasks": tasks,
        }, self.headers)
        for _ in range(1200):
            await asyncio.sleep(0.1)
            if answer in self.ended:
                break
        async with self.http.get(BASE + "/api/v1/chats/" + chat["chat_id"], headers=self.headers) as r:
            return (await r.json())["chat"]["history"]["messages"][answer]["content"]


async def post(http, path, body, headers=None):
    async with http.post(BASE + path, json=body, headers=headers) as r:
        if r.status != 200:
            sys.exit(f"{path}: {r.status} {await r.text()}")
        return await r.json()


async def main():
    async with aiohttp.ClientSession() as http:
        people, admin = [], None
        for n, name in enumerate(NAMES):
            account = {"name": f"Person {n}", "email": f"p{n}@example.com", "password": "a-password-4-this-test"}
            if admin is None:
                admin = await post(http, "/api/v1/auths/signup", account)
            else:
                await post(http, "/api/v1/auths/add", {**account, "role": "user"}, {"Authorization": "Bearer " + admin["token"]})
            people.append(Person(http, await post(http, "/api/v1/auths/signin", account), name))
        async with http.get(BASE + "/api/models", headers=people[0].headers) as r:
            await r.json()
        for p in people:
            await p.connect()
        await asyncio.gather(*[p.say(f"My cat is called {p.name}.") for p in people])
        await asyncio.sleep(2)
        answers = await asyncio.gather(*[p.say("What is my cat called?") for p in people])
        await asyncio.sleep(2)  # the tasks of the last answers
        for p, answer in zip(people, answers):
            print(json.dumps({"name": p.name, "answer": answer}))
            await p.socket.disconnect()


asyncio.run(main())
