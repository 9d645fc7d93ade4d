// Finds text that is cut off or overlaps other text, by its boxes. Returns a list of sentences.
const faults = [], boxes = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const parent = node.parentElement;
  if (!node.textContent.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(parent.tagName) || !parent.checkVisibility()) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const rect of range.getClientRects()) {
    if (rect.width < 1) continue;
    const text = node.textContent.trim().slice(0, 40);
    let {left, right, top, bottom} = rect, scrolls = false;
    for (let box = parent; box && box !== document.body; box = box.parentElement) {
      const style = getComputedStyle(box), edge = box.getBoundingClientRect();
      if (["auto", "scroll"].includes(style.overflowX)) {
        scrolls = true;  // what is outside can be reached by scrolling
        left = Math.max(left, edge.left);
        right = Math.min(right, edge.right);
      } else if (style.overflowX !== "visible" && (rect.left < edge.left - 1 || rect.right > edge.right + 1)) {
        faults.push(`"${text}" is cut by its ${box.tagName}`);
      }
    }
    if (!scrolls && (rect.left < -0.5 || rect.right > document.documentElement.clientWidth + 0.5)) faults.push(`"${text}" is beyond the page: ${rect.left} to ${rect.right}`);
    if (right - left > 1) boxes.push({text, node, left, right, top, bottom});
  }
}
for (const timeline of window.gyre.timelines) {
  const edge = timeline.canvas.getBoundingClientRect();
  for (const label of timeline.labels) {
    if (label.left < 0 || label.right > edge.width || label.bottom > edge.height || label.top < 0) faults.push(`"${label.text}" is cut by the timeline`);
    boxes.push({text: label.text, node: label, left: edge.left + label.left, right: edge.left + label.right, top: edge.top + label.top, bottom: edge.top + label.bottom});
  }
}
boxes.sort((a, b) => a.top - b.top);
for (let i = 0; i < boxes.length; ++i) {
  for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - 2; ++j) {
    const a = boxes[i], b = boxes[j];
    if (a.node !== b.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - b.top > 2) faults.push(`"${a.text}" lies over "${b.text}"`);
  }
}
return {faults, boxes: boxes.length, width: document.documentElement.scrollWidth};
