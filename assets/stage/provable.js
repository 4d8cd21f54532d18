// A figure that opens its proof.

import { button } from "./dom.js";

/** An empty button to be filled with the figure; `key` is a name of proofs.js. */
export const provable = (scene, key) => button("ft-provable", "", () => scene.prove(key));
