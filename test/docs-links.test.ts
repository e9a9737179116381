import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { docPages } from './support/doc-pages'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docPages()]
const subPages = pages.filter((page) => page.split('/').length > 2)

describe('the pages', () => {
  test('link only to files and headings that are there', () => {
    expect([...pages, 'test/bench/README.md'].flatMap((page) => deadLinks(page, read(page)))).toEqual([])
  })

  test('are all on both maps: README.md and docs/README.md', () => {
    for (const map of ['README.md', 'docs/README.md']) {
      const linked = linkedFrom(map)
      expect(pages.filter((page) => !page.endsWith('README.md') && !subPages.includes(page) && !linked.includes(page))).toEqual([])
    }
  })

  test('of a folder are all on the page of its name', () => {
    expect(subPages.filter((page) => !linkedFrom(`${dirname(page)}.md`).includes(page))).toEqual([])
  })

  test('a link to nowhere, and one to a missing heading, would be seen', () => {
    expect(deadLinks('docs/made-up.md', '[a](nowhere.md) [b](security.md#nothing) [c](../README.md) [d](https://example.com)')).toEqual([
      'docs/made-up.md: nowhere.md',
      'docs/made-up.md: security.md#nothing',
    ])
  })
})

test('CONTRIBUTING.md names only files that are there', () => {
  const named = [...read('CONTRIBUTING.md').matchAll(/`((?:src|test|docs)\/[^`<]+)`/g)].map(([, path = '']) => path)
  expect(named.filter((path) => !existsSync(join(root, path)) && path !== builtSite)).toEqual([])
  expect(named.length).toBeGreaterThan(10)
})
const builtSite = 'docs/.vitepress/dist'

describe('README.md', () => {
  test('begins with an app of at most 20 lines, without a provider', () => {
    const [, app = ''] = /```js\n([\s\S]*?)```/.exec(read('README.md')) ?? []

    expect(app.trimEnd().split('\n').length).toBeLessThanOrEqual(20)
    expect(app).toContain('requireLogin()')
    expect(app).not.toMatch(/oauth|providers/i)
  })
})

function linkedFrom(page: string): string[] {
  return linksOf(read(page)).map((link) => normalize(join(dirname(page), link.replace(/#.*$/, ''))))
}

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
