import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = ['README.md', 'CHANGELOG.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)]

describe('the pages', () => {
  test('link only to files and headings that are there', () => {
    expect(pages.flatMap((page) => deadLinks(page, read(page)))).toEqual([])
  })

  test('are all on both maps: README.md and docs/README.md', () => {
    for (const map of ['README.md', 'docs/README.md']) {
      const linked = linksOf(read(map)).map((link) => normalize(join(dirname(map), link.replace(/#.*$/, ''))))
      expect(pages.filter((page) => !page.endsWith('README.md') && !linked.includes(page))).toEqual([])
    }
  })

  test('a link to nowhere, and one to a missing heading, would be seen', () => {
    expect(deadLinks('docs/made-up.md', '[a](nowhere.md) [b](security.md#nothing) [c](../README.md) [d](https://example.com)')).toEqual([
      'docs/made-up.md: nowhere.md',
      'docs/made-up.md: security.md#nothing',
    ])
  })
})

describe('README.md', () => {
  const app = /```ts\n([\s\S]*?)```/.exec(read('README.md'))?.[1] ?? ''

  test('shows one app, which is examples/minimal.ts, in at most 40 lines', () => {
    expect(app).toBe(read('examples/minimal.ts'))
    expect(app.trimEnd().split('\n').length).toBeLessThanOrEqual(40)
    expect(read('README.md').match(/```(ts|js)/g)).toHaveLength(1)
  })

  test('gets from install to first login in at most four steps', () => {
    expect(read('README.md').match(/^\*\*\d\. /gm)?.length).toBeLessThanOrEqual(4)
  })
})

function deadLinks(page: string, text: string): string[] {
  return linksOf(text)
    .filter((link) => !leadsSomewhere(page, link))
    .map((link) => `${page}: ${link}`)
}

function leadsSomewhere(page: string, link: string): boolean {
  const [file = '', heading] = link.split('#')
  const path = file === '' ? page : join(dirname(page), file)
  if (!existsSync(join(root, path))) return false
  return heading === undefined || headingsOf(read(path)).includes(heading)
}

/** Relative ones; code is not prose. */
function linksOf(text: string): string[] {
  const prose = text.replace(/^ *```[\s\S]*?^ *```$/gm, '').replace(/`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => String(link)).filter((link) => !/^[a-z]+:/.test(link))
}

/** As the usual renderers make anchors of them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    String(heading)
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .trim()
      .replace(/\s/g, '-'),
  )
}
