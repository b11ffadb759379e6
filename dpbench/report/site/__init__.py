"""The static site: pages in Markdown from what is committed, which mkdocs turns into HTML (`make site`)."""
