import axe, { type AxeResults, type RunOptions } from 'axe-core'
import type { Page, Response } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { areaPageNames, type LayoutTemplate, linkPageNames } from '../../src/core/templates'
import { englishPages } from '../../src/core/texts/english-pages'
import { hasChromium } from '../demo/chromium'
import type { LocalOptions } from '../local/people'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'
import { misplaced } from './misplaced'
import { type PageState, pageStates, stateSettings } from './page-states'
import { type PagesHost, pagesInChromium } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')

// 24 px for what is pressed is of WCAG 2.2, and off unless asked for.
const everyRule: RunOptions = { resultTypes: ['violations'], preload: false, rules: { 'target-size': { enabled: true } } }
/** The rules about colours: only these answer differently in another theme. */
const rulesOfTheme: RunOptions = { ...everyRule, runOnly: ['color-contrast', 'link-in-text-block'] }
const locales = ['en-US', 'pt-BR'] as const
const widths = [320, 768, 1440]
const themes = ['light', 'dark'] as const
const largestPage = 30_000

/** What the states below have shown. */
const seen = { pages: new Set<string>(), addresses: new Set<string>(), throttled: new Set<string>(), texts: '' }

describe.skipIf(!hasChromium)('every page, in Chromium', { timeout: 600_000 }, () => {
  const { serve, replace, browse } = pagesInChromium(database)

  // One window for many pages: to open one takes Chromium longer than to look at a page.
  test.each(Object.entries(pageStates))('%s: axe finds nothing, everything has its place, and it is small', async (_name, states) => {
    const site = await serve({}, 'localhost') // passkeys need a name
    const windows = await Promise.all(locales.map((locale) => browse(site, { locale }, [/the server responded with a status of 50[03]/])))
    const found: string[] = []
    for (const state of states) {
      const looks = []
      for (const [index, locale] of locales.entries()) {
        const page = windows[index] as Page
        await page.context().clearCookies()
        await show(page, state, (options) => replace(site, options), locale)
        looks.push(findingsOn(page)) // while the next one is opened
      }
      found.push(...(await Promise.all(looks)).flat().map((finding) => `${state.name}: ${finding}`))
    }
    expect(found).toEqual([])
  })

  test('these are all: each page, each address, each form that is sent too often, each title and each notice is among them', () => {
    const routes = mountedRoutes.flat()
    const addresses = routes.filter(({ method, describes }) => method === 'GET' && describes.isPage === true)
    const paths = [...new Set(addresses.map(({ path }) => path))]
    const isForm = (path: string) => routes.some((route) => route.method === 'POST' && route.path === path && route.when !== undefined)
    const forms = paths.filter((path) => isForm(path) && !path.includes(':') && !sentOnce.includes(path))
    const texts = Object.entries(englishPages).filter(([key]) => /^notice\.|\.title$/.test(key))
    expect({
      pages: [...linkPageNames, ...areaPageNames].filter((name) => !seen.pages.has(name)),
      addresses: paths.filter((path) => ![...seen.addresses].some((address) => patternOf(path).test(address))),
      forms: forms.filter((path) => !seen.throttled.has(`/auth${path}`)),
      texts: texts.flatMap(([key, text]) => (sentenceOf(text).test(seen.texts) ? [] : [key])),
    }).toEqual({ pages: [], addresses: [], forms: [], texts: [] })
  })
})

/** Forms whose first success ends what their page is about. The one that renames is as theirs. */
const sentOnce = [
  '/logout',
  '/account/delete',
  '/account/connections/remove',
  '/account/security/passkeys/remove',
  '/account/security/passkeys/rename',
]

/** Opens the page in this state, and notes what there was to see. */
async function show(page: Page, { name, open, settings, options }: PageState, serve: Serve, locale: string): Promise<void> {
  let [presented, last]: [string, Response | null] = ['', null]
  // A layout that fails hears the page's name, and the page is shown as without one.
  const layout: LayoutTemplate = ({ page }) => {
    presented = page
    throw new Error('ours is to be shown')
  }
  const note = (response: Response) => {
    if (response.request().isNavigationRequest()) last = response
  }
  const served = await serve({ settings: { ...stateSettings, ...settings }, options: { ...options, templates: { layout } } })
  page.on('response', note)
  await open(page, served)
  page.off('response', note)
  const { pathname } = new URL(page.url())
  seen.pages.add(presented)
  seen.addresses.add(pathname)
  if (isTooMany(last)) seen.throttled.add(pathname)
  if (locale === 'en-US') seen.texts += `\n${await page.textContent('body')}`
  expect([name, await page.evaluate('document.documentElement.lang'), (await page.content()).length < largestPage]).toEqual([
    name,
    locale,
    true,
  ])
}

type Serve = (options: LocalOptions) => Promise<PagesHost>

function isTooMany(response: Response | null): boolean {
  return response?.status() === 429 && response.request().method() === 'POST'
}

function patternOf(path: string): RegExp {
  return new RegExp(`^/auth${path.replaceAll(/:\w+/g, '[^/]+')}$`)
}

/** A text of ours, whatever stands in its places. */
function sentenceOf(text: string): RegExp {
  return new RegExp(text.replaceAll(/[.?+()]/g, '\\$&').replaceAll(/\{\w+\}/g, '.+'))
}

/** Every rule at each width, and the rules about colours in each theme. */
async function findingsOn(page: Page): Promise<string[]> {
  const found: string[] = []
  await page.evaluate(axe.source)
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 })
    for (const colorScheme of themes) {
      await page.emulateMedia({ colorScheme })
      const rules = colorScheme === themes[0] ? everyRule : rulesOfTheme
      const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(rules)})`)) as Pick<AxeResults, 'violations'>
      for (const { id, nodes } of violations) found.push(`${width} ${colorScheme} ${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    }
    const places = width === 320 ? ['100%', '200%'] : ['100%']
    for (const size of places) found.push(...(await misplacedAt(page, size)).map((what) => `${width} ${size} ${what}`))
  }
  return found
}

/** `size` of the text: a person's own size of letters, which every length of ours but the window's follows (WCAG 2.2, 1.4.4). */
async function misplacedAt(page: Page, size: string): Promise<string[]> {
  await page.evaluate(`document.documentElement.style.fontSize = '${size}'`)
  const found = (await page.evaluate(misplaced)) as string[]
  await page.evaluate(`document.documentElement.style.fontSize = ''`)
  return found
}
