"""Acting as somebody else: whom one becomes, and the right that each part of it takes."""

import pytest
from tests.unit.cluster.apiserver.api import MAPS, Api, serving

from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.impersonation import acting
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.rbac import Attributes
from trainmaster.kube.transport import Request

ANN = Identity("ann")


def become(**headers: str) -> tuple[Identity, list[str]]:
    asked: list[str] = []

    def check(who: Identity, right: Attributes) -> None:
        assert (ANN, "impersonate") == (who, right.verb)
        parts = (right.group, right.resource, right.subresource, right.namespace, right.name)
        asked.append(" ".join(part for part in parts if part))

    sent = {f"impersonate-{name.replace('_', '-')}": value for name, value in headers.items()}
    return acting(ANN, sent, check), asked


@pytest.mark.parametrize(("headers", "identity", "rights"), [
    pytest.param({}, ANN, [], id="nobody else"),
    pytest.param({"user": "ben"}, Identity("ben"), ["users ben"], id="a user"),
    pytest.param({"user": "ben", "group": "a\nb"}, Identity("ben", ("a", "b", "system:authenticated")),
                 ["users ben", "groups a", "groups b"], id="a user with groups"),
    pytest.param({"user": "ben", "uid": "7"}, Identity("ben", uid="7"), ["users ben", "authentication.k8s.io uids 7"],
                 id="with a UID"),
    pytest.param({"user": "ben", "extra_acme.com%2Fx": "1\n2"}, Identity("ben", extra=(("acme.com/x", ("1", "2")),)),
                 ["users ben", "authentication.k8s.io userextras acme.com/x 1",
                  "authentication.k8s.io userextras acme.com/x 2"], id="with more about them"),
    pytest.param({"user": "system:serviceaccount:z:robot"},
                 Identity("system:serviceaccount:z:robot",
                          ("system:serviceaccounts", "system:serviceaccounts:z", "system:authenticated")),
                 ["serviceaccounts z robot"], id="an account, which brings its groups"),
    pytest.param({"user": "system:anonymous"}, Identity("system:anonymous", ("system:unauthenticated",)),
                 ["users system:anonymous"], id="nobody in particular"),
])
def test_becoming(headers: dict[str, str], identity: Identity, rights: list[str]) -> None:
    assert (identity, rights) == become(**headers)


def test_groups_alone_are_nobody() -> None:
    with pytest.raises(Failure) as caught:
        become(group="system:masters")

    assert 400 == caught.value.code
    assert caught.value.message == ('requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"system:masters"}, '
                                    "Extra:map[string][]string(nil)} without impersonating a user name")


async def said(api: Api, who: Identity, **headers: str) -> tuple[int, str]:
    sent = {f"impersonate-{name}": value for name, value in headers.items()}
    answer = await InProcess(api.server, who).send(Request("GET", MAPS, (), sent))
    return answer.status, answer.body.decode()


async def test_it_takes_a_right_and_gives_no_more_than_the_other_has() -> None:
    async with serving() as api:
        masters = Identity("root", ("system:masters",))

        assert 403 == (await said(api, masters, user="ben"))[0]
        assert 200 == (await said(api, masters, user="ben", group="system:masters"))[0]
        code, text = await said(api, ANN, user="ben")
        assert 403 == code
        assert ('users \\"ben\\" is forbidden: User \\"ann\\" cannot impersonate resource \\"users\\" in API group '
                '\\"\\" at the cluster scope') in text
