import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { io, type Socket } from 'socket.io-client'
import supertest from 'supertest'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import * as socketIo from '../../examples/socket-io'
import * as websocket from '../../examples/websocket'
import { hasChromium } from '../demo/chromium'
import { chromiumHosts } from '../support/chromium-hosts'
import { freePort } from '../support/free-port'

/** The examples, with the real packages on both ends. */

const password = 'three quiet green rivers'

let opened: (() => unknown)[] = []
beforeAll(() => {
  process.env.AUTH_JWT_SECRET = randomBytes(48).toString('base64')
})
afterEach(async () => {
  for (const close of opened.reverse()) await close()
  opened = []
})

async function serving(server: Server): Promise<string> {
  opened.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  if (!server.listening) await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

/** An account, which is active and signed in. */
async function signUp(url: string, email: string) {
  const { body } = await supertest(url).post('/auth/signup').send({ email, password })
  const token = new URL(body.activation_url).pathname.split('/').at(-1)
  return supertest(url).post('/auth/activate').send({ token })
}

const pairsOf = (response: supertest.Response) =>
  ((response.headers['set-cookie'] ?? []) as unknown as string[]).map((line) => line.split(';')[0])

describe('examples/websocket.ts', () => {
  const open = (url: string, headers: Record<string, string>) => {
    const socket = new WebSocket(url.replace('http', 'ws'), { headers })
    opened.push(() => socket.terminate())
    return socket
  }
  /** `open`, or the status of the refusal. */
  const outcomeOf = (socket: WebSocket) =>
    new Promise<string | number | undefined>((resolve) => {
      socket.on('error', () => undefined)
      socket.on('open', () => resolve('open'))
      socket.on('unexpected-response', (_request, { statusCode }) => resolve(statusCode))
    })

  async function startWith(accessTokenTtlSeconds?: number) {
    const port = await freePort()
    const own = `http://localhost:${port}`
    const url = await serving(
      await websocket.start(port, { filename: ':memory:', ...(accessTokenTtlSeconds && { accessTokenTtlSeconds }) }),
    )
    const browser = await signUp(url, 'ada@example.com')
    const login = await supertest(url).post('/auth/login').set('Origin', own).send({ email: 'ada@example.com', password })
    return { url, own, user: String(browser.body.user_id), cookie: pairsOf(login).join('; ') }
  }

  test('lets the person of the cookies in, and nobody else', async () => {
    const { url, own, user, cookie } = await startWith()
    expect((await supertest(url).get('/')).text).toContain('new WebSocket(')
    const socket = open(url, { cookie, origin: own })
    expect(await outcomeOf(socket)).toBe('open')
    socket.send('Hello')
    expect(String((await once(socket, 'message'))[0])).toBe(`${user}: Hello`)
    expect(await outcomeOf(open(url, { origin: own }))).toBe(401)
    expect(await outcomeOf(open(`${url}/?access_token=${/access_token=([^;]+)/.exec(cookie)?.[1]}`, { origin: own }))).toBe(401)
    expect(await outcomeOf(open(url, { cookie, origin: 'https://evil.example.net' }))).toBe(403)
  })

  test('a refused client cannot keep its connection', async () => {
    const { url } = await startWith()
    const { port } = new URL(url)
    const client = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
    client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    client.on('error', () => undefined) // a reset is an end too
    const answer: Buffer[] = []
    client.on('data', (part) => answer.push(part))
    await once(client, 'end')
    expect(String(Buffer.concat(answer))).toMatch(/^HTTP\/1.1 401 Refused/)
    const closed = new Promise((resolve) => client.once('close', resolve)) // `once` of Node rejects at a reset
    const knocking = setInterval(() => client.write('anybody there?'), 20) // answered by a reset, once the server has closed its end
    await closed
    clearInterval(knocking)
  })

  test('closes every socket of the session with 1008 at a logout', async () => {
    const { url, own, cookie } = await startWith()
    const [socket, watcher] = [open(url, { cookie, origin: own }), open(url, { cookie, origin: own })]
    expect([await outcomeOf(socket), await outcomeOf(watcher)]).toEqual(['open', 'open'])
    const closed = [once(socket, 'close'), once(watcher, 'close')]
    expect((await supertest(url).post('/auth/logout').set({ Cookie: cookie, Origin: own }).send({})).status).toBe(204)
    for (const [code, reason] of await Promise.all(closed)) expect([code, String(reason)]).toEqual([1008, 'INVALID_TOKEN'])
    expect(await outcomeOf(open(url, { cookie, origin: own }))).toBe(401)
  })

  test('closes with 3000 when the access token expires; after a refresh the page connects again', async () => {
    const { url, own, cookie } = await startWith(2)
    const socket = open(url, { cookie, origin: own })
    expect(await outcomeOf(socket)).toBe('open')
    const [code, reason] = await once(socket, 'close')
    expect([code, String(reason)]).toEqual([3000, 'TOKEN_EXPIRED'])
    expect(await outcomeOf(open(url, { cookie, origin: own }))).toBe(401)
    const refreshed = await supertest(url).post('/auth/refresh').set({ Cookie: cookie, Origin: own }).send({})
    expect(await outcomeOf(open(url, { cookie: pairsOf(refreshed).join('; '), origin: own }))).toBe('open')
  })
})

describe.skipIf(!hasChromium)('the page of examples/websocket.ts, in Chromium', () => {
  const { newContext } = chromiumHosts()

  test('connects after a login, again each time the access token expires, and not after a logout', async () => {
    const port = await freePort()
    const url = await serving(await websocket.start(port, { filename: ':memory:', accessTokenTtlSeconds: 3 }))
    await signUp(url, 'ada@example.com')
    const tab = await (await newContext({})).newPage()
    const closed: unknown[] = []
    await tab.exposeFunction('tellClose', (code: number) => closed.push(code))
    await tab.addInitScript(`
      const Own = WebSocket
      window.WebSocket = class extends Own {
        constructor(...given) { super(...given); this.addEventListener('close', ({ code }) => tellClose(code)) }
      }`)
    const says = (text: string) => tab.waitForFunction(`document.querySelector('output').textContent.includes(${JSON.stringify(text)})`)
    await tab.goto(`http://localhost:${port}/`)
    await says('signed out')
    await tab.fill('[name=email]', 'ada@example.com')
    await tab.fill('[name=password]', password)
    await tab.click('text=Log in')
    await says('connected')
    const expiries = () => closed.filter((code) => code === 3000).length
    await expect.poll(expiries, { timeout: 12_000 }).toBeGreaterThanOrEqual(1)
    await says('connected')
    await tab.fill('[name=text]', 'still here')
    await tab.click('text=Say')
    await says('still here')
    const before = expiries()
    await expect.poll(expiries, { timeout: 12_000 }).toBeGreaterThan(before)
    await says('connected') // by a token that has just been issued
    await tab.evaluate(`fetch('/auth/logout', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })`)
    await says('signed out')
    expect(closed.at(-1)).toBe(1008)
  }, 40_000)
})

describe('examples/socket-io.ts', () => {
  const connect = (url: string, tokenOf: () => unknown) => {
    const socket = io(url, {
      transports: ['websocket'],
      reconnectionDelay: 50,
      forceNew: true,
      auth: (send) => void Promise.resolve(tokenOf()).then((token) => send({ token })),
    })
    opened.push(() => socket.disconnect())
    return socket
  }
  const codeOf = (socket: Socket) =>
    new Promise<string>((resolve) => {
      socket.on('connect', () => resolve('connected'))
      socket.on('connect_error', (error) => resolve(String((error as { data?: { code?: string } }).data?.code)))
    })
  const nextClose = (socket: Socket) =>
    new Promise<unknown>((resolve) => {
      socket.once('disconnect', (_reason, details) => resolve((details as { context?: { code?: number } } | undefined)?.context?.code))
    })

  async function startWith(accessTokenTtlSeconds?: number) {
    const url = await serving(await socketIo.start(0, { filename: ':memory:', ...(accessTokenTtlSeconds && { accessTokenTtlSeconds }) }))
    const { body } = await signUp(url, 'ada@example.com')
    return { url, ...(body as { access_token: string; refresh_token: string }) }
  }

  test('lets the person of the token in, and nobody else', async () => {
    const { url, access_token: token } = await startWith()
    const [socket, other] = [connect(url, () => token), connect(url, () => token)]
    expect([await codeOf(socket), await codeOf(other)]).toEqual(['connected', 'connected'])
    const notice = new Promise((resolve) => other.once('notice', resolve))
    socket.emit('notify', 'Hello')
    expect(await notice).toBe('Hello')
    expect(await codeOf(connect(url, () => 'x'))).toBe('INVALID_TOKEN')
    expect(await codeOf(connect(url, () => undefined))).toBe('INVALID_TOKEN')
    expect(await codeOf(connect(`${url}?token=${token}`, () => undefined))).toBe('INVALID_TOKEN')
  })

  test('closes with 1008 at a logout, and the client is refused when it comes again', async () => {
    const { url, access_token: token, refresh_token } = await startWith()
    const socket = connect(url, () => token)
    expect(await codeOf(socket)).toBe('connected')
    const closed = nextClose(socket)
    const refused = new Promise<string>((resolve) => {
      socket.on('connect_error', (error) => resolve(String((error as { data?: { code?: string } }).data?.code)))
    })
    expect((await supertest(url).post('/auth/logout').send({ refresh_token })).status).toBe(204)
    expect([await closed, await refused]).toEqual([1008, 'INVALID_TOKEN'])
  })

  test('closes with 3000 when the access token expires, and the client comes again with a refreshed token', async () => {
    const { url, access_token, refresh_token } = await startWith(2)
    let token = access_token
    const socket = connect(url, async () => {
      if (token === '') token = (await supertest(url).post('/auth/refresh').send({ refresh_token })).body.access_token
      return token
    })
    expect(await codeOf(socket)).toBe('connected')
    const closed = nextClose(socket)
    const again = new Promise<string>((resolve) => {
      socket.once('disconnect', () => {
        token = ''
        socket.once('connect', () => resolve('connected again'))
      })
    })
    expect([await closed, await again]).toEqual([3000, 'connected again'])
  })
})
