#!/usr/bin/env python3
"""Says a prompt to an agent that has subagents, in the project that a header names."""
import sys

from deepagents import create_deep_agent
from langchain_anthropic import ChatAnthropic

url, project, prompt = sys.argv[1:]
model = ChatAnthropic(model="claude-sonnet-4-5", base_url=url, api_key="sk-test", default_headers={"X-Graphiti-Workspace": project})
agent = create_deep_agent(model=model, system_prompt="You research.")
print(agent.invoke({"messages": [{"role": "user", "content": prompt}]})["messages"][-1].text)
