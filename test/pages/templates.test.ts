import { expect, test } from 'vitest'
import { html, type LayoutInput } from '../../src'
import { appPerTest } from '../support/app-per-test'

const start = appPerTest()
const settings = { tokenDelivery: 'cookie', pagesEnabled: true } as const

const layout = ({ title, lang, head, body, nonce }: LayoutInput) =>
  `<!doctype html><html lang="${lang}"><head>${html`<title>${title}</title>`}${head}<style nonce="${nonce}">body{margin:0}</style></head><body class="ours">${body}</body></html>`

test('a layout of the host stands around every page, with a nonce that the policy knows', async () => {
  const { browser } = await start({ settings, options: { templates: { layout } } })
  for (const path of ['/auth/login', '/auth/signed-out', '/auth/activate/x']) {
    const { text, headers } = await browser().get(path)
    expect(text).toMatch(/^<!doctype html>.*<body class="ours">\s*<section class="card">/s)
    const nonce = /<style nonce="([^"]+)"/.exec(text)?.[1]
    expect(headers['content-security-policy']).toContain(`style-src 'self' 'nonce-${nonce}'`)
  }
})

test('a page of the host takes the place of one body, inside of the layout', async () => {
  const signedOut = ({ body, lang }: { body: string; lang: string }) => `<p>Bye (${lang})</p>${body}`
  const { browser } = await start({ settings, options: { templates: { layout, pages: { signedOut } } } })
  expect((await browser().get('/auth/signed-out?lang=pt')).text).toMatch(
    /<body class="ours"><p>Bye \(pt-BR\)<\/p>\s*<section class="card">/,
  )
  expect((await browser().get('/auth/login')).text).not.toContain('Bye')
})

test('a layout or a page that throws, or that answers no string, is logged, and ours is shown', async () => {
  for (const broken of [
    () => 7,
    () => Promise.reject(new Error('x')).catch(() => 'late'),
    () => {
      throw new Error('lost')
    },
  ]) {
    const templates = { layout: broken as never, pages: { login: broken as never } }
    const mounted = await start({ settings, options: { templates } })
    const { status, text } = await mounted.browser().get('/auth/login')
    expect([status, text.includes('<main id="content"')]).toEqual([200, true])
    const logged = mounted.logs.entries.filter(({ level, message }) => level === 'error' && message.includes('template failed'))
    expect(logged).toHaveLength(2)
  }
})

test('boot refuses what is no function', async () => {
  await expect(start({ settings, options: { templates: { layout: 'x' as never } } })).rejects.toThrow(/templates\.layout/)
  await expect(start({ settings, options: { templates: { pages: { logni: layout } as never } } })).rejects.toThrow(/logni/)
})
