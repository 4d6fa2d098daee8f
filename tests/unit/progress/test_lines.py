"""What programs print, and what it says about how far they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.progress.lines import Heard, last_metrics, read
from trainmaster.progress.report import Report

NOTHING = Heard()


@pytest.mark.parametrize(("before", "line", "expected"), [
    pytest.param(NOTHING, " 37%|███▋      | 37/100 [00:12<00:20,  3.05it/s]", Report(0.37, 20.0), id="tqdm"),
    pytest.param(NOTHING, "100%|██████████| 5/5 [1:00:12<?, 3.05s/it, loss=0.34]", Report(1.0, None, {"loss": 0.34}),
                 id="tqdm with what it shows beside the bar"),
    pytest.param(NOTHING, "\r 10%|█ | 1/10 [00:01<00:09, 1it/s]\r 20%|██ | 2/10 [00:02<01:08, 1it/s]",
                 Report(0.2, 68.0),                id="a bar that redrew itself: the last counts"),
    pytest.param(NOTHING, "Epoch 3:  45%|████▌ | 422/938 [00:05<00:06, 76.2it/s, v_num=0, train_loss=0.123]",
                 Report(0.45, 6.0, {"train_loss": 0.123}, "epoch 3"), id="Lightning, which does not say of how many"),
    pytest.param(NOTHING, "\rEpoch 2:  69%|██████▉   | 11/16 [00:00<00:00, 56.69it/s, train_loss=0.0636]"
                 "\rEpoch 2: 100%|██████████| 16/16 [00:00<00:00, 52.22it/s, train_loss=0.0419]`Trainer.fit` stopped: "
                 "`max_epochs=3` reached.", Report(1.0, 0.0, {"train_loss": 0.0419}, "epoch 2"),
                 id="Lightning 2.6 as it was recorded, with the line that it does not begin anew"),
    pytest.param(NOTHING, "Epoch 2/10:  50%|███▋ | 37/74 [00:12<00:20,  3.05it/s]", Report(0.15),
                 id="a bar inside an epoch of several"),
    pytest.param(NOTHING, "Downloading: 37%|██| 37/100 [00:12<00:20,  3.05it/s]", Report(),
                 id="a download is not training"),
    pytest.param(NOTHING, "Epoch 3/10", Report(0.2), id="Keras begins an epoch"),
    pytest.param(Heard(3, 10), "235/470 ━━━━━━━━━━━━━━━━━━━━ 2s 5ms/step - accuracy: 0.8912 - loss: 0.3511",
                 Report(0.25, None, {"accuracy": 0.8912, "loss": 0.3511}), id="and counts its steps"),
    pytest.param(Heard(3, 10), "\x1b[1m235/470\x1b[0m \x1b[32m━━━━━━━━━━\x1b[0m\x1b[37m━━━━\x1b[0m 2s 5ms/step",
                 Report(0.25), id="in colours"),
    pytest.param(Heard(1, 2), "469/469 [==============================] - 2s 5ms/step - loss: 0.2958",
                 Report(0.5, None, {"loss": 0.2958}), id="Keras 2"),
    pytest.param(NOTHING, "Train Epoch: 1 [640/64000 (1%)]\tLoss: 2.213470",
                 Report(0.01, None, {"loss": 2.21347}, "epoch 1"), id="the examples of PyTorch"),
    pytest.param(NOTHING, "{'loss': 0.6931, 'grad_norm': 2.1, 'learning_rate': 4.5e-05, 'epoch': 0.1}",
                 Report(metrics={"loss": 0.6931, "grad_norm": 2.1, "learning_rate": 4.5e-05}), id="Transformers"),
    pytest.param(NOTHING, "[3]\ttrain-logloss:0.123\teval-error:0.02",
                 Report(metrics={"train-logloss": 0.123, "eval-error": 0.02}), id="XGBoost"),
    pytest.param(NOTHING, "[10]\tvalid_0's auc: 0.9", Report(metrics={"valid_0-auc": 0.9}), id="LightGBM"),
    pytest.param(NOTHING, "worker 0 step 26/100 loss 1.8913", Report(0.26, None, {"loss": 1.8913}),
                 id="a step of so many, and a pair"),
    pytest.param(NOTHING, "worker 0 step 26 loss 1.8913", Report(metrics={"loss": 1.8913}),
                 id="a step of nobody knows how many"),
    pytest.param(NOTHING, "epoch 2 | train loss 0.5 | val acc 0.6",
                 Report(metrics={"train-loss": 0.5, "val-acc": 0.6}), id="pairs with a word before them"),
    pytest.param(NOTHING, "loss=nan acc 0.5", Report(metrics={"acc": 0.5}), id="what is no number cannot be drawn"),
    pytest.param(NOTHING, "done: 190 steps, loss 0.5063 -> 0.0246", Report(), id="a summary is not a point of a curve"),
    pytest.param(NOTHING, "error: no such file 3", Report(), id="an error is not an error rate"),
    pytest.param(NOTHING, "exit code 3; loss of 3 workers", Report(), id="the loss of workers is another loss"),
    pytest.param(NOTHING, "GPU 0/4 of 10.88.0.1 on 10/12", Report(), id="other fractions mean nothing"),
    pytest.param(NOTHING, "", Report(), id="nothing"),
])
def test_a_line_says(before: Heard, line: str, expected: Report) -> None:
    assert expected == read(before, line)[1]


def test_the_epoch_is_remembered() -> None:
    heard, _ = read(NOTHING, "Epoch 3/10")

    assert Heard(3, 10) == heard
    assert heard == read(heard, "something else 7")[0]


@given(st.text(max_size=300), st.integers(0, 9), st.integers(0, 9))
def test_no_line_is_an_error_and_no_share_is_beyond_the_whole(line: str, epoch: int, epochs: int) -> None:
    _, report = read(Heard(epoch, epochs), line)

    assert report.fraction is None or 0 <= report.fraction <= 1


def test_the_last_value_of_each_metric_counts() -> None:
    lines = ["Epoch 1/2", "loss 0.9 accuracy 0.1", "nothing here", "loss 0.5"]

    assert {"loss": 0.5, "accuracy": 0.1} == last_metrics(lines)
