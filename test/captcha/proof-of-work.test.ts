import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { knexCounters, memoryCounters, proofOfWork, turnstile } from '../../src'
import { solveCaptcha } from '../../src/client/captcha'
import { testClock } from '../../src/testing'
import { type LocalHost, newAddress, onLocal, password, post } from '../local/people'
import { databases } from '../support/databases'

const opened = await databases()
const [sqlite] = opened
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

const puzzleFor = async (host: LocalHost, action: string) => (await host.browser().get(`/auth/captcha?action=${action}`)).body

function solved({ puzzle, bits }: { puzzle: string; bits: number }): string {
  for (let n = 0; ; n++) {
    const answer = `${puzzle}.${n}`
    if (createHash('sha256').update(answer).digest().readUInt32BE(0) >>> (32 - bits) === 0) return answer
  }
}

const signUp = async (host: LocalHost, captcha: string) => (await post(host, '/signup', { email: newAddress(), password, captcha })).status

describe('proofOfWork()', () => {
  test('31.4.7 gives a signed puzzle that no cache keeps, and refuses another action', async () => {
    const host = await start({ options: { captcha: proofOfWork({ bits: 8 }) } })
    const answer = await host.browser().get('/auth/captcha?action=signup')
    expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store'])
    expect(answer.body).toEqual({ puzzle: expect.any(String), bits: 8, expires_at: expect.any(String) })
    for (const query of ['', '?action=other', '?action=signup&action=link'])
      expect((await host.browser().get(`/auth/captcha${query}`)).status).toBe(422)
    const none = await start()
    expect((await none.browser().get('/auth/captcha?action=signup')).status).toBe(404)
  })

  test('31.4.7 one solution serves one request, of its action, within ten minutes', async () => {
    const clock = testClock()
    const host = await start({ options: { captcha: proofOfWork({ bits: 8 }), now: clock.now } })
    const answer = solved(await puzzleFor(host, 'signup'))
    expect(await signUp(host, answer)).toBe(201)
    expect(await signUp(host, answer)).toBe(403)
    expect(await signUp(host, solved(await puzzleFor(host, 'link')))).toBe(403)
    const late = solved(await puzzleFor(host, 'signup'))
    clock.advance(600_000)
    expect(await signUp(host, late)).toBe(403)
  })

  test('31.4.7 refuses work that was not done, a forged puzzle and one of another router', async () => {
    const host = await start({ options: { captcha: proofOfWork({ bits: 8 }) } })
    const other = await start({
      settings: { jwtSecret: 'another secret of forty characters or so' },
      options: { captcha: proofOfWork({ bits: 8 }) },
    })
    const { puzzle, bits } = await puzzleFor(host, 'signup')
    const good = solved({ puzzle, bits })
    const n = Number(good.slice(good.lastIndexOf('.') + 1))
    const idle = [...Array(n + 1).keys()].map((at) => `${puzzle}.${at}`).find((one) => one !== good)
    const forged = solved({ puzzle: puzzle.replace(/[^.]+$/, 'AAAA'), bits })
    for (const answer of [idle ?? 'x', forged, solved(await puzzleFor(other, 'signup')), puzzle, `${good} `, good.replace(/\d+$/, '-1')])
      expect(await signUp(host, answer)).toBe(403)
    expect(await signUp(host, good)).toBe(201)
  })

  test('31.4.7 three requests with one solution at once: one passes, over two routers with shared counters', async () => {
    const counters = memoryCounters()
    const make = () => start({ options: { captcha: proofOfWork({ bits: 8 }), throttle: { counters } } })
    const hosts = [await make(), await make()] as const
    const answer = solved(await puzzleFor(hosts[0], 'signup'))
    const statuses = await Promise.all([signUp(hosts[0], answer), signUp(hosts[1], answer), signUp(hosts[0], answer)])
    expect(statuses.sort()).toEqual([201, 403, 403])
  })

  test('31.4.7 doorward/client/captcha solves it', async () => {
    const host = await start({ options: { captcha: proofOfWork() } })
    const server = createServer(host.app).listen(0, '127.0.0.1')
    try {
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      expect(await signUp(host, await solveCaptcha(`http://127.0.0.1:${port}/auth/`, 'signup'))).toBe(201)
      await expect(solveCaptcha(`http://127.0.0.1:${port}/nowhere`, 'signup')).rejects.toThrow('status 404')
    } finally {
      server.close()
    }
  })

  test.each([7, 27, 1.5, Number.NaN])('31.4.7 refuses %s bits', (bits) => {
    expect(() => proofOfWork({ bits })).toThrow('bits from 8 to 26')
  })
})

describe.each(opened)('proofOfWork() on $name', (database) => {
  const { start } = onLocal(database)

  test('31.4.7 one counter in the database decides between two routers', async () => {
    const { knex } = await start()
    const make = () => start({ options: { captcha: proofOfWork({ bits: 8 }), throttle: { counters: knexCounters(knex) } } })
    const hosts = [await make(), await make()] as const
    const answer = solved(await puzzleFor(hosts[0], 'signup'))
    const statuses = await Promise.all([signUp(hosts[0], answer), signUp(hosts[1], answer)])
    expect(statuses.sort()).toEqual([201, 403])
  })
})

describe('turnstile()', () => {
  /** As the service of Cloudflare: each answer is good once. */
  function cloudflare() {
    const good = new Set(['signup:one', 'link:two'])
    const asked: URLSearchParams[] = []
    const httpClient = async (url: string, { method, body }: { method?: string; body?: string } = {}) => {
      const sent = new URLSearchParams(body)
      asked.push(sent)
      expect([url, method]).toEqual(['https://challenges.cloudflare.com/turnstile/v0/siteverify', 'POST'])
      const response = sent.get('response') ?? ''
      if (response === 'broken') return { status: 500, headers: {}, body: 'oops' }
      const answer =
        sent.get('secret') === 'right-secret' && good.delete(response)
          ? { success: true, action: response.split(':')[0] }
          : { success: false }
      return { status: 200, headers: {}, body: JSON.stringify(answer) }
    }
    return { captcha: turnstile({ siteKey: 'site', secret: 'right-secret', httpClient }), asked }
  }

  test('31.4.6 passes only with success and the same action, once', async () => {
    const { captcha, asked } = cloudflare()
    const host = await start({ options: { captcha } })
    expect(await signUp(host, 'signup:one')).toBe(201)
    expect(asked[0]?.get('remoteip')).toMatch(/127\.0\.0\.1|::1/)
    expect(await signUp(host, 'signup:one')).toBe(403)
    expect(await signUp(host, 'link:two')).toBe(403)
    expect(await signUp(host, 'broken')).toBe(503)
  })

  test('31.4.6 shows the widget with its action, and names Cloudflare in the policy', () => {
    const { captcha } = cloudflare()
    const markup = captcha.html?.('n0nce', { action: 'email_login', locale: 'pt-BR' }) ?? ''
    expect(markup).toContain('data-action="email_login"')
    expect(markup).toContain('data-response-field-name="captcha"')
    expect(markup).toContain('nonce="n0nce" src="https://challenges.cloudflare.com/turnstile/v0/api.js"')
    expect(captcha.csp?.frameSrc).toEqual(['https://challenges.cloudflare.com'])
  })

  test('31.4.6 refuses keys that could leave the attribute', () => {
    for (const siteKey of ['', 'a" onload="x', undefined as unknown as string])
      expect(() => turnstile({ siteKey, secret: 's' })).toThrow('siteKey')
  })
})
