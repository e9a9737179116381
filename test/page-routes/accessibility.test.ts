import axe, { type AxeResults, type RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { databases } from '../support/databases'
import { pageStates, stateSettings } from './page-states'
import { pagesInChromium } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')
/** Each with the width at which every rule is asked. */
const languages = [
  ['en-US', /^en/, 320],
  ['pt-BR', /^pt/, 1440],
] as const
const widths = [320, 768, 1440]
const options: RunOptions = { resultTypes: ['violations'], preload: false }
// 24 px for what is pressed is of WCAG 2.2, and off unless asked for.
const everything: RunOptions = { ...options, rules: { 'target-size': { enabled: true } } }
const layout: RunOptions = { ...options, runOnly: ['color-contrast', 'link-in-text-block', 'target-size', 'scrollable-region-focusable'] }
const colours: RunOptions = { ...options, runOnly: ['color-contrast', 'link-in-text-block'] }
const largestPage = 30_000

describe.skipIf(!hasChromium)('every page, in Chromium', { timeout: 60_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test.each(pageStates)('$name: axe finds nothing, nothing is wider than the window, and it is small', async ({ name, open }) => {
    const served = await serve({ settings: stateSettings }, 'localhost') // passkeys need a name
    for (const [locale, lang, whole] of languages) {
      const page = await browse(served, { locale })
      await open(page, served)
      expect([name, (await page.content()).length < largestPage]).toEqual([name, true])
      expect(await page.evaluate('document.documentElement.lang')).toMatch(lang)
      await page.evaluate(axe.source)
      expect(await findingsOn(page, whole)).toEqual([])
    }
  })
})

/** What each width and each theme may change; every rule at one width. */
async function findingsOn(page: Page, whole: number): Promise<string[]> {
  const found: string[] = []
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 })
    const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    if (over !== 0) found.push(`${width}: wider by ${over}`)
    for (const [colorScheme, rules] of [
      ['light', width === whole ? everything : layout],
      ['dark', colours],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(rules)})`)) as Pick<AxeResults, 'violations'>
      for (const { id, nodes } of violations) found.push(`${width} ${colorScheme} ${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    }
  }
  return found
}
