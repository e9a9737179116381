import { webcrypto } from 'node:crypto'
import { createContext, runInContext } from 'node:vm'
import { expect, test } from 'vitest'
import { pageScript } from '../../src/core/theme/page-script'

type Listener = (event: object) => unknown

/** A page with one form that needs a puzzle. @param answer of `GET /captcha` */
function page(answer: () => { ok: boolean; json: () => Promise<object> }) {
  const listeners: Record<string, Listener> = {}
  const attributes = new Map<string, string>()
  const sent: string[] = []
  const submit = async () => {
    let isStopped = false
    await listeners['submit']?.({ submitter: null, preventDefault: () => (isStopped = true) })
    if (!isStopped) sent.push(input.value)
  }
  const form = {
    dataset: {},
    addEventListener: (_name: string, listener: Listener) => (listeners['submit'] = listener),
    getAttribute: (name: string) => attributes.get(name) ?? null,
    setAttribute: (name: string, value: string) => attributes.set(name, value),
    removeAttribute: (name: string) => attributes.delete(name),
    requestSubmit: submit,
  }
  const input = { form, value: '', dataset: { puzzle: '/auth/captcha?action=signup' } }
  const document = {
    documentElement: { lang: 'en' },
    body: { dataset: {} },
    querySelectorAll: (selector: string) => (selector === '[data-puzzle]' ? [input] : []),
    querySelector: () => null,
    addEventListener: () => undefined,
  }
  const addEventListener = (name: string, listener: Listener) => (listeners[name] = listener)
  const window = {}
  runInContext(
    pageScript,
    createContext({ document, window, crypto: webcrypto, fetch: async () => answer(), TextEncoder, addEventListener }),
  )
  return { submit, sent, comesBack: () => listeners['pageshow']?.({ persisted: true }) }
}

let puzzles = 0
const puzzle = () => ({ ok: true, json: async () => ({ puzzle: `puzzle${puzzles++}`, bits: 8 }) })

test('31.4.7 a form without a puzzle, as past the limit of the route, is sent at once without an answer', { timeout: 5_000 }, async () => {
  const { submit, sent } = page(() => ({ ok: false, json: async () => ({ code: 'TOO_MANY_REQUESTS' }) }))
  await submit()
  expect(sent).toEqual([''])
})

test('31.4.7 a page that the person goes back to solves a new puzzle: an answer is good once', async () => {
  const { submit, sent, comesBack } = page(puzzle)
  await Promise.all([submit(), submit()])
  expect(sent).toHaveLength(1)
  comesBack()
  await submit()
  expect(sent).toHaveLength(2)
  expect(new Set(sent.map((answer) => answer.split('.')[0])).size).toBe(2)
})
