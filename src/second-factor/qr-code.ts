import { encode } from 'uqr'

/**
 * Returns a QR code as an SVG document. The SVG has one stroke for each run of dark squares. A stroke for each square would make the SVG
 * too large for a page.
 */
export function qrCode(text: string): string {
  const { data, size } = encode(text, { ecc: 'M' })
  const runs = data.flatMap((row, y) => runsOf(row).map(([x, length]) => `M${x} ${y}.5h${length}`))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><rect fill="white" width="${size}" height="${size}"/><path stroke="black" d="${runs.join('')}"/></svg>`
}

/** Returns the runs of adjacent dark squares. */
function runsOf(row: readonly boolean[]): [start: number, length: number][] {
  const runs: [number, number][] = []
  row.forEach((isDark, x) => {
    const last = runs.at(-1)
    if (isDark && last && last[0] + last[1] === x) last[1] += 1
    else if (isDark) runs.push([x, 1])
  })
  return runs
}
