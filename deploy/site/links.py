"""What mkdocs does beside its own: links out of docs/ lead to the repository."""

import posixpath
import re

LINK = re.compile(r"\]\(((?:\.\./)+[^)]+)\)")


def on_page_markdown(markdown, *, page, config, **_):
    folder = posixpath.dirname("docs/" + page.file.src_uri)

    def absolute(match):
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        if path.startswith("docs/"):
            return match[0]
        return f"]({config.repo_url}/blob/main/{path})"

    return LINK.sub(absolute, markdown)
