import { createHash } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { breachedPasswords, createHttpClient, type HttpClient } from '../../src'
import { newAddress, onLocal, password, post } from '../local/people'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

const digestOf = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()
/** What Have I Been Pwned answers about a prefix, with padding: CRLF, counts, and made-up suffixes that count 0. */
function rangeWith(found: Readonly<Record<string, number>>, prefix: string): string {
  const rows = Object.entries(found).filter(([text]) => digestOf(text).startsWith(prefix))
  const padding = Array.from({ length: 800 }, (_, at) => `${digestOf(`padding ${at}`).slice(5)}:0`)
  return [...rows.map(([text, count]) => `${digestOf(text).slice(5)}:${count}`), ...padding].join('\r\n')
}

const opened: (() => Promise<unknown>)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of opened.splice(0)) await close()
})

/** The range interface, played on loopback; the library still asks for the real address. */
async function openRange(answer: RequestListener) {
  const asked: { url: string; headers: Record<string, unknown> }[] = []
  const server = createServer((req, res) => {
    asked.push({ url: req.url ?? '', headers: req.headers })
    answer(req, res)
  }).listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  opened.push(async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
  const client = createHttpClient()
  const httpClient: HttpClient = (url, call) => {
    expect(url).toMatch(/^https:\/\/api\.pwnedpasswords\.com\/range\/[0-9A-F]{5}$/)
    return client(url.replace('https://api.pwnedpasswords.com', `http://127.0.0.1:${(server.address() as AddressInfo).port}`), call)
  }
  return { httpClient, asked }
}

const about = { email: 'ana@example.test', name: null }
const played = (found: Readonly<Record<string, number>>) =>
  openRange((req, res) => res.end(rangeWith(found, (req.url ?? '').split('/').at(-1) ?? '')))

describe('breachedPasswords', () => {
  test('17 refuses what was found, tells five characters of the SHA-1 and nothing else, and asks for padding', async () => {
    const range = await played({ [password]: 3 })
    const check = breachedPasswords({ httpClient: range.httpClient })
    expect([await check(password, about), await check('another quiet harbour', about)]).toEqual(['breached', null])
    expect(range.asked[0]?.url).toBe(`/range/${digestOf(password).slice(0, 5)}`)
    expect(range.asked[0]?.headers).toMatchObject({ 'add-padding': 'true', 'accept-encoding': 'identity' })
    expect(JSON.stringify(range.asked)).not.toContain(digestOf(password).slice(5))
  })

  test('17 a padded row is no breach, and `minCount` says how many are', async () => {
    const { httpClient } = await played({ padded: 0, rare: 9, common: 10 })
    const check = breachedPasswords({ httpClient })
    expect([await check('padded', about), await check('rare', about), await check('common', about)]).toEqual([null, 'breached', 'breached'])
    const tolerant = breachedPasswords({ httpClient, minCount: 10 })
    expect([await tolerant('rare', about), await tolerant('common', about)]).toEqual([null, 'breached'])
  })

  test('17 an answer is kept for an hour, and at most 1,000 of them', async () => {
    const { httpClient, asked } = await played({ [password]: 1 })
    const check = breachedPasswords({ httpClient })
    const now = vi.spyOn(performance, 'now').mockReturnValue(0)
    for (const at of [0, 3_599_999, 3_600_000]) {
      now.mockReturnValue(at)
      expect(await check(password, about)).toBe('breached')
    }
    expect(asked).toHaveLength(2)

    const calls: string[] = []
    const body = rangeWith({}, '')
    const counting = breachedPasswords({
      async httpClient(url) {
        calls.push(url)
        return { status: 200, headers: {}, body }
      },
    })
    const texts = new Map(Array.from({ length: 1_200 }, (_, at) => [digestOf(String(at)).slice(0, 5), String(at)] as const))
    const [first = '', ...others] = [...texts.values()].slice(0, 1_001)
    for (const text of [first, ...others]) await counting(text, about)
    expect(calls).toHaveLength(1_001)
    await counting(others.at(-1) ?? '', about)
    expect(calls).toHaveLength(1_001)
    await counting(first, about)
    expect(calls).toHaveLength(1_002)
  })

  const broken: Readonly<Record<string, RequestListener>> = {
    slow: () => undefined,
    dripping: (_req, res) => {
      const timer = setInterval(() => res.write(`${'A'.repeat(35)}:1\r\n`), 100)
      res.on('close', () => clearInterval(timer))
    },
    huge: (_req, res) => void res.end(`${'A'.repeat(35)}:1\r\n`.repeat(20_000)),
    'out of order': (_req, res) => void res.writeHead(503).end(),
    elsewhere: (_req, res) => void res.writeHead(302, { location: '/range/00000' }).end(),
    'a page of a proxy': (_req, res) => void res.end('<html>Sign in to the network</html>'),
    empty: (_req, res) => void res.end(),
    compressed: (_req, res) => void res.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
    'hung up': (req) => void req.socket.destroy(),
  }
  test.each(Object.entries(broken))('17 a service that is %s refuses nobody, or with `refuse` everybody', async (_name, answer) => {
    const { httpClient } = await openRange(answer)
    await expect(breachedPasswords({ httpClient })(password, about)).rejects.toThrow()
    expect(await breachedPasswords({ httpClient, onFailure: 'refuse' })(password, about)).toBe('unchecked')
  })

  test('17 a client of the host that heeds no signal is not waited for', async () => {
    const check = breachedPasswords({ httpClient: () => new Promise(() => undefined), onFailure: 'refuse' })
    expect(await check(password, about)).toBe('unchecked')
  })

  test('17 at a signup: 422 with the rule, its sentence in both languages, and no password in the log', async () => {
    const { httpClient } = await played({ [password]: 1 })
    const logger = logTap()
    const refusal = async (check: ReturnType<typeof breachedPasswords>, language = 'en-US') => {
      const host = await start({ options: { passwordPolicy: { check }, logger } })
      const { status, body } = await post(host, '/signup', { email: newAddress(), password }, { 'Accept-Language': language })
      return [status, body.code, body.details]
    }
    const away: HttpClient = async () => {
      throw new Error('no network')
    }
    const check = breachedPasswords({ httpClient })
    expect(await refusal(check)).toEqual([422, 'VALIDATION_ERROR', { rule: 'breached', message: expect.stringContaining('data breach') }])
    expect((await refusal(check, 'pt-BR'))[2].message).toContain('vazamento')
    expect(await refusal(breachedPasswords({ httpClient: away, onFailure: 'refuse' }))).toEqual([
      422,
      'VALIDATION_ERROR',
      { rule: 'unchecked', message: expect.stringContaining('could not check') },
    ])
    expect((await refusal(breachedPasswords({ httpClient: away })))[0]).toBe(201)
    expect(logger.text()).toContain('passwordPolicy.check failed')
    expect(logger.text()).not.toContain(password)
  })

  test('a wrong option is told at once', () => {
    const wrong = [{ minCount: 0 }, { minCount: 1.5 }, { onFailure: 'open' }, { httpClient: 'x' }, { mincount: 1 }]
    for (const options of wrong) expect(() => breachedPasswords(options as never)).toThrow(/^breachedPasswords: /)
  })
})
