// The nine chapters: which panel, and where its ways out lead. The text of chapter n stands under cN.

import { AdvicePanel } from "./advice.js";
import { ChoosingPanel } from "./choosing.js";
import { LoopPanel } from "./loop.js";
import { MaskPanel } from "./mask.js";
import { SavingPanel } from "./saving.js";
import { SoftmaxPanel } from "./softmax.js";
import { StreamPanel } from "./stream.js";
import { TokensPanel } from "./tokens.js";
import { WeightPanel } from "./weight.js";

const RUN = ["run", (go, material) => go.run(material.main)];

export const CHAPTERS = [
  { Panel: TokensPanel, own: true, ways: [RUN] },
  { Panel: SoftmaxPanel, own: true, ways: [RUN] },
  { Panel: LoopPanel, own: true, ways: [RUN] },
  { Panel: MaskPanel, own: true, ways: [RUN, ["phases", (go) => go.kv("phases")]] },
  { Panel: StreamPanel, own: true, ways: [RUN, ["ceiling", (go) => go.kv("ceiling")]] },
  { Panel: SavingPanel, own: false, ways: [["race", (go) => go.kv("race")]] },
  { Panel: WeightPanel, own: false, ways: [["calculator", (go) => go.kv("calculator")]] },
  { Panel: ChoosingPanel, own: false, ways: [["compare", (go) => go.compare()]] },
  { Panel: AdvicePanel, own: false, ways: [] },
];
