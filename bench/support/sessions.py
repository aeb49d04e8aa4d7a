"""Sessions as users write them: what they run, and what must hold after they were parked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Session:
    """Cells of a session, and assertions about what they left."""

    name: str
    written: str
    checked: str


def _s(name: str, written: str, checked: str) -> Session:
    return Session(name, written, checked)


_PLAIN: Final = (
    _s("numbers", "a, b, c = 1, 2.5, 3j", "assert (a, b, c) == (1, 2.5, 3j)"),
    _s("text", "t = 'é' * 1000; b = b'\\0x'", "assert t == 'é' * 1000 and b == b'\\0x'"),
    _s("containers", "d = {1: [2, {3}], 'k': (4,)}", "assert d == {1: [2, {3}], 'k': (4,)}"),
    _s("shared", "a = []; b = [a, a]", "a.append(1); assert b == [[1], [1]] and b[0] is a"),
    _s("cycle", "a = []; a.append(a)", "assert a[0] is a"),
    _s("set of tuples", "s = {(1, 2), (3, 4)}", "assert s == {(1, 2), (3, 4)}"),
    _s("deque", "import collections as c; q = c.deque([1, 2], 5)", "assert q.maxlen == 5"),
    _s("counter", "import collections as c; n = c.Counter('aab')", "assert n['a'] == 2"),
    _s(
        "defaultdict",
        "import collections as c; d = c.defaultdict(lambda: 7)",
        "assert d['x'] == 7",
    ),
    _s("dates", "import datetime as t; d = t.date(2026, 1, 2)", "assert d.day == 2"),
    _s("decimal", "import decimal; d = decimal.Decimal('0.1')", "assert d * 10 == 1"),
    _s("path", "import pathlib; p = pathlib.Path('/a') / 'b'", "assert p.name == 'b'"),
    _s("regex", "import re; r = re.compile('a+')", "assert r.match('aab').end() == 2"),
    _s("exception", "e = ValueError('x', 1)", "assert e.args == ('x', 1)"),
    _s("range and slice", "r = range(5); s = slice(1, 2)", "assert list(r)[s] == [1]"),
    _s(
        "environment", "import os; os.environ['MINE'] = '1'", "import os; assert os.environ['MINE']"
    ),
    _s("directory", "import os; os.chdir('/tmp')", "import os; assert os.getcwd() == '/tmp'"),
    _s("random", "import random; random.seed(3)", "assert random.random() == 0.23796462709189137"),
    _s("logger", "import logging; log = logging.getLogger('mine')", "assert log.name == 'mine'"),
)
_CODE: Final = (
    _s("function", "def f(x): return x + 1", "assert f(1) == 2"),
    _s("lambda", "g = lambda x, y=2: x * y", "assert g(3) == 6"),
    _s("closure", "def make(k):\n  return lambda v: v * k\nh = make(4)", "assert h(2) == 8"),
    _s("global", "n = 0\ndef up():\n  global n; n += 1", "up(); assert n == 1"),
    _s("recursion", "def f(n): return n and n * f(n - 1) or 1", "assert f(5) == 120"),
    _s("mutual", "def a(n): return n and b(n - 1)\ndef b(n): return n and a(n - 1)", "a(9)"),
    _s(
        "nonlocal",
        "def count():\n  n = 0\n  def up():\n    nonlocal n; n += 1; return n\n  return up\n"
        "c = count(); c()",
        "assert c() == 2",
    ),
    _s("partial", "import functools as f; p = f.partial(int, base=2)", "assert p('11') == 3"),
    _s(
        "decorator",
        "import functools\ndef twice(f):\n  @functools.wraps(f)\n  def w(*a): return 2 * f(*a)\n"
        "  return w\n@twice\ndef three(): return 3",
        "assert three() == 6 and three.__name__ == 'three'",
    ),
    _s(
        "cache",
        "import functools\n@functools.lru_cache\ndef sq(n): return n * n\nsq(3)",
        "assert sq(3) == 9",
    ),
    _s("class", "class A:\n  def __init__(self): self.x = 1\na = A()", "assert type(a) is A"),
    _s(
        "inheritance",
        "class A:\n  def f(self): return 1\n"
        "class B(A):\n  def f(self): return super().f() + 1\nb = B()",
        "assert b.f() == 2 and isinstance(b, A)",
    ),
    _s(
        "property and class method",
        "class A:\n  n = 3\n  @property\n  def p(self): return self.n\n  @classmethod\n"
        "  def c(cls): return cls()\na = A.c()",
        "assert a.p == 3",
    ),
    _s(
        "dataclass",
        "import dataclasses as d\n@d.dataclass(frozen=True)\nclass P:\n  x: int = 1\np = P()",
        "assert p == P(1) and hash(p) == hash(P(1))",
    ),
    _s("enum", "import enum\nclass C(enum.Enum):\n  R = 1\nc = C.R", "assert c is C.R"),
    _s(
        "named tuple",
        "import collections as c; P = c.namedtuple('P', 'x y'); p = P(1, 2)",
        "assert p.y == 2 and type(p) is P",
    ),
    _s("slots", "class S:\n  __slots__ = ('v',)\ns = S(); s.v = 2", "assert s.v == 2"),
    _s(
        "abstract class",
        "import abc\nclass A(abc.ABC):\n  @abc.abstractmethod\n  def f(self): ...\n"
        "class B(A):\n  def f(self): return 1\nb = B()",
        "assert b.f() == 1",
    ),
    _s("method", "l = [3, 1]; m = l.append; m(2)", "m(9); assert l[-1] == 9"),
    _s(
        "registry",
        "class R:\n  all = []\n  def __init__(self): R.all.append(self)\nr = R()",
        "assert R.all == [r]",
    ),
    _s(
        "typing",
        "from typing import NamedTuple\nclass T(NamedTuple):\n  x: int\nt = T(1)",
        "assert t.x == 1",
    ),
    _s("import as", "import os.path as osp, json", "assert osp.join('a', 'b') and json.dumps(1)"),
)
_SCIENCE: Final = (
    _s("array", "import numpy as np; a = np.arange(6.0)", "assert a.sum() == 15"),
    _s("view", "import numpy as np; a = np.zeros(9); v = a[::2]", "v[1] = 5; assert a[2] == 5"),
    _s(
        "reshaped and transposed",
        "import numpy as np; a = np.arange(6); m = a.reshape(2, 3).T",
        "m[0, 1] = 9; assert a[3] == 9",
    ),
    _s(
        "structured array",
        "import numpy as np; a = np.zeros(2, [('x', 'i4'), ('y', 'f8')])",
        "assert a['y'].sum() == 0",
    ),
    _s(
        "objects in an array",
        "import numpy as np; a = np.array([{}, [1]], object)",
        "assert a[1] == [1]",
    ),
    _s(
        "data frame",
        "import pandas as pd; f = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})",
        "assert f['a'].sum() == 3 and f['b'].isna().sum() == 1",
    ),
    _s(
        "generator of numpy",
        "import numpy as np; r = np.random.default_rng(1); r.random()",
        "assert r.random() == 0.9504636963259353",
    ),
    _s(
        "tensor",
        "import torch; t = torch.arange(4.0); v = t[1:]",
        "v[0] = 9; assert t[1] == 9",
    ),
    _s(
        "half precision",
        "import torch; t = torch.ones(3, dtype=torch.bfloat16)",
        "assert t.dtype == torch.bfloat16 and t.sum() == 3",
    ),
    _s(
        "module",
        "import torch; m = torch.nn.Linear(2, 1); w = m.weight.detach().clone()",
        "assert torch.equal(m.weight, w)",
    ),
    _s(
        "own module",
        "import torch\nclass N(torch.nn.Module):\n  def __init__(self):\n    super().__init__()\n"
        "    self.l = torch.nn.Linear(2, 2)\n  def forward(self, x): return self.l(x) * k\n"
        "k = 2; n = N(); y = n(torch.ones(1, 2)).detach()",
        "assert torch.equal(n(torch.ones(1, 2)), y)",
    ),
    _s(
        "optimizer",
        "import torch; m = torch.nn.Linear(2, 1); o = torch.optim.Adam(m.parameters())\n"
        "m(torch.ones(1, 2)).sum().backward(); o.step()",
        "assert o.param_groups[0]['params'][0] is m.weight and o.state[m.weight]['step'] == 1",
    ),
    _s(
        "data loader",
        "import torch; d = torch.utils.data.DataLoader([1, 2, 3, 4], batch_size=2)",
        "assert len(list(d)) == 2",
    ),
    _s(
        "classifier",
        "from sklearn.linear_model import LogisticRegression as L\n"
        "import numpy as np; m = L().fit([[0], [1]], [0, 1])",
        "assert list(m.predict([[0], [1]])) == [0, 1]",
    ),
    _s(
        "pipeline",
        "from sklearn.pipeline import make_pipeline as mp\n"
        "from sklearn.preprocessing import StandardScaler as S\n"
        "from sklearn.tree import DecisionTreeClassifier as T\n"
        "m = mp(S(), T(random_state=0)).fit([[0], [1]], [0, 1])",
        "assert list(m.predict([[0], [1]])) == [0, 1]",
    ),
)
_NOT_TO_BE_KEPT: Final = (
    _s("generator", "g = (n for n in range(3)); next(g)", "assert next(g) == 1"),
    _s("open file", "f = open('/etc/hostname')", "assert f.read()"),
    _s(
        "thread",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,)).start()",
        "",
    ),
    _s("socket", "import socket; s = socket.socket()", "assert s.fileno() > 0"),
)
SESSIONS: Final = (*_PLAIN, *_CODE, *_SCIENCE, *_NOT_TO_BE_KEPT)
