import { describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src'
import { contrastOf, readableOn } from '../../src/core/theme/style-sheet'
import { papers } from '../../src/core/theme/theme'
import { appPerTest } from '../support/app-per-test'

const start = appPerTest()
const settings = { tokenDelivery: 'cookie', pagesEnabled: true } as const
const withTheme = (theme: object) => start({ settings, options: { theme: { name: 'Harbour', ...theme } } })

test('a page has the name, the logo and the addresses of the product, and its style sheet the accent and the rules', async () => {
  const theme = {
    logoUrl: '/logo.svg',
    homeUrl: '/',
    supportUrl: 'mailto:help@example.test',
    accent: '#0b6e4f',
    css: '.card{border-radius:0}',
  }
  const { browser } = await withTheme(theme)
  const { text } = await browser().get('/auth/login')
  expect(text).toContain('<title>Sign in · Harbour</title>')
  expect(text).toContain('<a class="brand" href="/" referrerpolicy="no-referrer"><img src="/logo.svg" alt=""><span>Harbour</span></a>')
  expect(text).toContain('href="mailto:help@example.test"')
  const sheet = (await browser().get(String(/href="([^"]+\.css)"/.exec(text)?.[1]))).text
  expect(sheet).toContain('--accent:#0b6e4f')
  expect(sheet.endsWith('.card{border-radius:0}')).toBe(true)
})

test('origins of the theme are added to the policy, and take nothing away', async () => {
  const { browser } = await withTheme({ csp: { styleSrc: ['https://fonts.example'], fontSrc: ['https://fonts.example'] } })
  const policy = String((await browser().get('/auth/login')).headers['content-security-policy'])
  expect(policy).toContain("style-src 'self' https://fonts.example; script-src 'self';")
  expect(policy).toContain('font-src https://fonts.example; ')
  expect(policy).toMatch(/^default-src 'none'; /)
})

describe('boot refuses', () => {
  test.each([
    [
      { accent: '#7aa7ff' },
      /theme\.accent has a contrast of 2\.39:1 against the light theme's background #ffffff.*nearest colour that passes is #[\da-f]{6}/,
    ],
    [{ accent: 'rebeccapurple' }, /theme\.accent must be a CSS hex colour/],
    [{ accent: { light: '#0b6e4f', dark: '#0b6e4f' } }, /theme\.accent\.dark has a contrast/],
    [{ name: '' }, /theme\.name/],
    [{ colour: '#000' }, /theme has no "colour"/],
    [{ logoUrl: 'https://cdn.example/logo.png' }, /theme\.logoUrl/],
    [{ logoUrl: '//cdn.example/logo.png' }, /theme\.logoUrl/],
    [{ homeUrl: 'javascript:alert(1)' }, /theme\.homeUrl/],
    [{ supportUrl: 'http://example.test' }, /theme\.supportUrl/],
    [{ css: '</style><script>' }, /theme\.css must not hold '<\/'/],
    [{ css: '@IMPORT "x.css"' }, /@import/],
    [{ css: 'a{background:url("https://cdn.example/a.png")}' }, /url\(…\) of another origin/],
    [{ css: 'a{background:u\\72l(//cdn.example)}' }, /backslash/],
    [{ csp: { defaultSrc: [] } }, /theme\.csp has no "defaultSrc"/],
    [{ csp: { imgSrc: ["'none'; script-src *"] } }, /theme\.csp\.imgSrc must be a list of origins/],
  ])('%j', async (theme, sentence) => {
    await expect(withTheme(theme)).rejects.toThrow(sentence)
    await expect(withTheme(theme)).rejects.toThrow(ConfigurationError)
  })
})

test('the nearest colour of a refused accent passes, and so does the one that is made for the dark theme', () => {
  for (const colour of ['#7aa7ff', '#ffff00', '#0b6e4f', '#000000', '#1f5fbf'] as const) {
    expect(contrastOf(readableOn(colour, papers.light, '#000000'), papers.light)).toBeGreaterThanOrEqual(4.5)
    expect(contrastOf(readableOn(colour, papers.dark, '#ffffff'), papers.dark)).toBeGreaterThanOrEqual(4.5)
  }
  expect(contrastOf('#000000', '#ffffff')).toBeCloseTo(21)
})

test('pages without cookies to sign in by are refused at boot', async () => {
  await expect(start({ settings: { pagesEnabled: true } })).rejects.toThrow(/pagesEnabled .*tokenDelivery/)
})
