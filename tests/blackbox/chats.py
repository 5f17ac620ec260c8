"""Chats as clients send them, and what an engine makes of them before its template sees them."""

import json

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "What's the weather in a \"city\"? (°C, <b>now</b>)",
        "parameters": {
            "type": "object", "properties": {
                "city": {"type": "string", "description": "City & country, e.g. Zürich"},
                "days": {"type": "integer", "minimum": 0,
                         "default": 1.5}, "units": {"type": "string", "enum": ["c", "f", None]}
            }, "required": ["city"], "additionalProperties": False
        },
    },
}
NOTHING = {
    "type": "function", "function": {
        "name": "nothing", "description": "", "parameters": {"type": "object", "properties": {}}
    }
}


def call(name, arguments, number):
    """Ids have nine characters: some templates insist."""
    return {
        "id": f"call{number:05}", "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)}
    }


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def result(text, number):
    return {"role": "tool", "tool_call_id": f"call{number:05}", "content": text}


ZURICH = call("get_weather",
              {"city": "Zürich", "days": 2, "deep": {"a": [1, 2.5, None, True, "\"x\"\n"]}}, 1)
PARIS = call("get_weather", {"city": "Paris"}, 2)

CHATS = {
    "one question": {"messages": [user("Hello, who are you?")]},
    "with a system message": {"messages": [system("You are terse."),
                                           user("Hi")]},
    "several turns": {
        "messages": [
            user("Hi"),
            assistant("Hello!"),
            user("More?"),
            assistant("Yes.\n\nMuch."),
            user("Go on")
        ]
    },
    "several turns with a system message": {
        "messages": [
            system("Be kind.\n"),
            user("  Hi  "),
            assistant(" Hello! "),
            user("\n\nMore?\n")
        ]
    },
    "an answer at the end": {"messages": [user("Hi"), assistant("Hello!")]},
    "no generation prompt": {
        "messages": [user("Hi"), assistant("Hello!")], "add_generation_prompt": False
    },
    "empty texts": {"messages": [system(""), user(""),
                                 assistant(""), user("")]},
    "two system messages": {"messages": [system("One."), system("Two."),
                                         user("Hi")]},
    "a system message in the middle": {
        "messages": [user("Hi"), assistant("Yes?"),
                     system("Be brief."),
                     user("Why?")]
    },
    "two questions in a row": {"messages": [user("One"), user("Two")]},
    "an answer first": {"messages": [assistant("I begin."), user("Do you?")]},
    "an unknown role": {"messages": [user("Hi"), {"role": "narrator", "content": "Night falls."}]},
    "letters of the world": {
        "messages": [
            system("東京 <b>&</b>"),
            user("é e\u0301 👩🏽‍🚀 ’s 'S \u200d\u00a0\u3000 ﷽"),
            assistant("ok\r\n\tok"),
            user("नमस्ते ١٢٣")
        ]
    },
    "code": {
        "messages": [
            user("```python\ndef f(x):\n    return {'a': [x]}\n```\n\n{{ x }} {% if y %}"),
            assistant("`f`"),
            user("<|im_end|")
        ]
    },
    "thoughts": {
        "messages": [
            user("2+2?"),
            assistant("<think>\nTwo and two.\n</think>\n\n4"),
            user("3+3?"),
            assistant("<think>hm</think>6"),
            user("Sure?")
        ]
    },
    "thoughts apart": {
        "messages": [user("2+2?"),
                     assistant("4", reasoning_content="Two and two."),
                     user("Sure?")]
    },
    "thinking off": {
        "messages": [user("2+2?")], "chat_template_kwargs": {"enable_thinking": False}
    },
    "thinking on": {
        "messages": [user("2+2?")],
        "chat_template_kwargs": {"enable_thinking": True, "unknown": [1, {"a": None}]}
    },
    "tools": {"messages": [user("Weather?")], "tools": [WEATHER]},
    "two tools and a system message": {
        "messages": [system("Use tools."), user("Weather?")], "tools": [WEATHER, NOTHING]
    },
    "a call": {
        "messages": [user("Weather?"), assistant(None, tool_calls=[ZURICH])], "tools": [WEATHER]
    },
    "a call and its result": {
        "messages": [
            user("Weather?"),
            assistant(None, tool_calls=[ZURICH]),
            result("{\"t\": 21}", 1)
        ], "tools": [WEATHER]
    },
    "a call with words": {
        "messages": [
            user("Weather?"),
            assistant("Let me see.", tool_calls=[PARIS]),
            result("rain", 2),
            assistant("Rain."),
            user("Thanks")
        ], "tools": [WEATHER]
    },
    "two calls": {
        "messages": [
            user("Weather?"),
            assistant("", tool_calls=[ZURICH, PARIS]),
            result("sun", 1),
            result("rain", 2),
            assistant("Sun, rain."),
            user("And now?")
        ], "tools": [WEATHER, NOTHING]
    },
    "calls without tools": {
        "messages": [
            system("S"),
            user("Weather?"),
            assistant(None, tool_calls=[PARIS]),
            result("rain", 2),
            user("So?")
        ]
    },
    "a call that an engine's template refuses": {
        "messages": [
            user("W?"),
            assistant(None, tool_calls=[{**PARIS, "id": "short"}]),
            result("rain", 2)
        ]
    },
    "an empty list of tools": {"messages": [user("Hi")], "tools": []},
    "no calls": {"messages": [user("Hi"),
                              assistant("Hello", tool_calls=[]),
                              user("Bye")]},
    "a name": {"messages": [{"role": "user", "name": "ada", "content": "Hi"}]},
    "parts": {
        "messages": [{
            "role": "user", "content": [{"type": "text", "text": "One."},
                                        {"type": "text", "text": "Two."}]
        }]
    },
    "one part": {
        "messages": [system("S"), {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    },
}


def with_tokens(tokens):
    """Chats whose users write special tokens."""
    return [{"messages": [user(f"a{token}b"),
                          assistant(f"{token}"),
                          user(f" {token}\n{token}")]} for token in tokens]


def prepared_call(tool_call):
    function = tool_call["function"]
    return {
        "id": tool_call["id"],
        "function": {"arguments": json.loads(function["arguments"]),
                     "name": function["name"]}, "type": tool_call["type"]
    }


def prepared_message(message):
    content = message["content"]
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content)
    seen = {"role": message["role"], "content": "" if content is None else content}
    if message.get("tool_calls"):
        seen["tool_calls"] = [prepared_call(tool_call) for tool_call in message["tool_calls"]]
    for name in ("tool_call_id", "name"):
        if name in message:
            seen[name] = message[name]
    if "reasoning_content" in message:
        seen.update(
            dict.fromkeys(("reasoning", "reasoning_content", "thinking"),
                          message["reasoning_content"]))
    return seen


def prepared(chat):
    """What a template sees of it, as vLLM prepares it: texts, arguments as what they stand for, members in its order."""
    return {
        "messages": [prepared_message(message) for message in chat["messages"]],
        "tools": chat.get("tools"), "documents": None,
        "add_generation_prompt": chat.get("add_generation_prompt",
                                          True), **chat.get("chat_template_kwargs", {})
    }
