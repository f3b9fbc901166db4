// What a reader of the page gets, as far as a script can tell.
(() => {
  const problems = [];
  const text = (node) => node.textContent.trim();
  // What is folded has no layout, and what a reader unfolds has to be as good.
  document.querySelectorAll("details").forEach((details) => { details.open = true; });

  // Relative luminance and contrast as WCAG 2 defines them.
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number).slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  const svgs = [...document.querySelectorAll("main svg")];
  for (const svg of svgs) {
    const [title, description] = ["title", "desc"].map((tag) => svg.querySelector(tag));
    const name = title ? text(title) : "a chart";
    const named = (svg.getAttribute("aria-labelledby") || "").split(" ");
    for (const node of [title, description]) {
      if (!node || !text(node) || !named.includes(node.id)) problems.push(`${name}: no name or description`);
    }
    const { width, height } = svg.viewBox.baseVal;
    const paper = getComputedStyle(svg.querySelector(":scope > rect")).fill;
    const labels = [...svg.querySelectorAll("text")].map((node) => ({ node, box: node.getBBox() }));
    labels.forEach(({ node, box }, n) => {
      if (box.x < 0 || box.y < -1 || box.x + box.width > width || box.y + box.height > height + 1) {
        problems.push(`${name}: "${text(node)}" is cut`);
      }
      const seen = contrast(getComputedStyle(node).fill, paper);
      if (seen < 4.5) problems.push(`${name}: "${text(node)}" has a contrast of ${seen.toFixed(1)}`);
      for (const other of labels.slice(0, n)) {
        const across = Math.min(box.x + box.width, other.box.x + other.box.width) - Math.max(box.x, other.box.x);
        // A line of letters does not fill the height of its box.
        const down = Math.min(box.y + box.height, other.box.y + other.box.height) - Math.max(box.y, other.box.y);
        if (across > 0.5 && down > 4) problems.push(`${name}: "${text(node)}" over "${text(other.node)}"`);
      }
    });
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  const twice = ids.filter((id, n) => ids.indexOf(id) !== n);
  if (twice.length) problems.push(`ids that occur twice: ${twice.join(", ")}`);

  const rows = (section) => [...section.querySelectorAll("table tbody tr")].map((row) => [...row.children].map(text));
  const charts = [...document.querySelectorAll("section.chart")].map((section) => ({
    id: section.getAttribute("aria-labelledby"),
    description: text(section.querySelector(".charts desc")),
    rows: rows(section),
  }));
  const root = document.documentElement;
  return JSON.stringify({ problems, charts, scrollWidth: root.scrollWidth, height: root.scrollHeight });
})()
