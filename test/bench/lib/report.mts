import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import type { BenchOptions } from './options.mjs'

export interface Report {
  /** As in `npm run bench -- name`; with `--write` the table goes between the two comments of that name. */
  name: string
  columns: readonly string[]
  rows: readonly (readonly (string | number)[])[]
  goals: readonly Goal[]
  /** Their versions are told. */
  packages: readonly string[]
  options: BenchOptions
  /** As it was called, where it takes other options. */
  command?: string
}

export interface Goal {
  text: string
  presented: number
  bound: 'at most' | 'at least'
  wanted: number
}

const page = join(import.meta.dirname, '../README.md')

/** Prints the table and what became of the goals; the exit code: 1 where one is missed. */
export function report({ name, columns, rows, goals, packages, options, command = commandOf(name, options) }: Report): number {
  const text = [
    conditions(packages, command),
    table([columns, ...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? rounded(cell) : cell)))]),
    goals.map((goal) => `- ${isMet(goal) ? '' : '**Missed**: '}${sentence(goal)}`).join('\n'),
  ].join('\n\n')
  console.log(`\n${text}\n`)
  if (options.write) writeSection(name, text)
  return goals.every(isMet) ? 0 : 1
}

function commandOf(name: string, { rounds, quick }: BenchOptions): string {
  return `npm run bench -- ${name} --rounds ${rounds}${quick ? ' --quick' : ''}`
}

function conditions(packages: readonly string[], command: string): string {
  const cores = `${availableParallelism()} cores of ${cpus()[0]?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB`
  const versions = packages.map((item) => `${item} ${versionOf(item)}`).join(', ')
  return `${new Date().toISOString().slice(0, 10)}; ${cores}; Node ${process.version}; ${versions}. \`${command}\``
}

/** Where a bench's servers find it: first in the bench's own packages, then in the library's. */
function versionOf(item: string): string {
  for (const folder of ['..', '../../..']) {
    const file = join(import.meta.dirname, folder, 'node_modules', item, 'package.json')
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version // every package has one
  }
  throw new Error(`${item} is not installed`)
}

/** Markdown whose columns also line up as plain text; the first to the left, the others, which are figures, to the right. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '')[column === 0 ? 'padEnd' : 'padStart'](width)).join(' | ')} |`
  const rule = `|${widths.map((width, column) => (column === 0 ? `:${'-'.repeat(width + 1)}` : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  const [head = [], ...body] = rows
  return [line(head), rule, ...body.map(line)].join('\n')
}

function rounded(value: number): string {
  if (!Number.isFinite(value)) return '–'
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}

function isMet({ presented, bound, wanted }: Goal): boolean {
  return bound === 'at most' ? presented <= wanted : presented >= wanted
}

function sentence({ text, presented, bound, wanted }: Goal): string {
  return `${text}: ${rounded(presented)} (goal: ${bound} ${rounded(wanted)})`
}

function writeSection(name: string, text: string): void {
  const [before, after] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const [start, end] = [before, after].map((mark) => readFileSync(page, 'utf8').indexOf(mark))
  if (start === undefined || end === undefined || start < 0 || end < start)
    throw new Error(`test/bench/README.md has no ${before} … ${after}`)
  const whole = readFileSync(page, 'utf8')
  writeFileSync(page, `${whole.slice(0, start + before.length)}\n${text}\n${whole.slice(end)}`)
}
