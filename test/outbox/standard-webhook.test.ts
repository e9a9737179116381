import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { type OutboxEvent, standardWebhook } from '../../src'

const event: OutboxEvent = {
  id: '0b1f4c1e-6f0e-4c8a-9a53-0d6a6c1d8a11',
  name: 'password.changed',
  payload: { userId: 'person', by: 'change' },
  createdAt: new Date('2026-11-30T01:02:03.004Z'),
}
const secretOf = (key: Buffer) => `whsec_${key.toString('base64')}`

interface Received {
  headers: IncomingMessage['headers']
  body: string
}

describe('a webhook', () => {
  const closing: (() => void)[] = []
  afterEach(() => {
    for (const close of closing.splice(0)) close()
  })

  async function receiver(respond: (res: ServerResponse) => void = (res) => res.writeHead(204).end()) {
    const received: Received[] = []
    const server = createServer(async (req, res) => {
      let body = ''
      for await (const chunk of req) body += chunk
      received.push({ headers: req.headers, body })
      respond(res)
    }).listen(0, '127.0.0.1')
    closing.push(() => {
      server.closeAllConnections()
      server.close()
    })
    await once(server, 'listening')
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received } // a TCP server's address is never a string
  }

  test('is posted once, with the id of the event and a signature of each secret', async () => {
    const { url, received } = await receiver()
    const keys = [randomBytes(32), randomBytes(24)]
    const before = Math.floor(Date.now() / 1000)
    await standardWebhook({ url, secret: keys.map(secretOf) })(event)
    expect(received).toHaveLength(1)
    const [{ headers, body } = { headers: {}, body: '' }] = received
    expect(JSON.parse(body)).toEqual({ type: 'password.changed', timestamp: '2026-11-30T01:02:03.004Z', data: event.payload })
    expect(headers['content-type']).toBe('application/json')
    expect(headers['webhook-id']).toBe(event.id)
    const seconds = Number(headers['webhook-timestamp'])
    expect(seconds).toBeGreaterThanOrEqual(before)
    expect(seconds).toBeLessThanOrEqual(Date.now() / 1000)
    const signed = keys.map((key) => `v1,${createHmac('sha256', key).update(`${event.id}.${seconds}.${body}`).digest('base64')}`)
    expect(headers['webhook-signature']).toBe(signed.join(' '))
  })

  test.each([301, 302, 400, 404, 410, 429, 500])('that is answered %i has failed', async (status) => {
    const { url, received } = await receiver((res) => res.writeHead(status, { Location: '/elsewhere' }).end('no'))
    await expect(standardWebhook({ url, secret: secretOf(randomBytes(32)) })(event)).rejects.toThrow(`answered ${status}`)
    expect(received).toHaveLength(1) // a redirect is not followed
  })

  test('whose receiver cannot be reached has failed', async () => {
    const { url } = await receiver()
    for (const close of closing.splice(0)) close()
    await expect(standardWebhook({ url, secret: secretOf(randomBytes(32)) })(event)).rejects.toThrow()
  })

  test('goes through the client of the host, which gets a signal', async () => {
    const calls: unknown[] = []
    const send = standardWebhook({
      url: 'https://hooks.example.com/doorward',
      secret: secretOf(randomBytes(64)),
      httpClient: async (...call) => {
        calls.push(call)
        return { status: 200, headers: {}, body: '' }
      },
    })
    await send(event)
    expect(calls).toEqual([
      ['https://hooks.example.com/doorward', expect.objectContaining({ method: 'POST', signal: expect.any(AbortSignal) })],
    ])
  })
})

describe('a webhook whose receiver or client misbehaves', () => {
  const secret = secretOf(randomBytes(32))
  const url = 'https://hooks.example.com/doorward'

  test.each([undefined, null, Number.NaN, 'ok'])('a client that answers the status %s has not delivered', async (status) => {
    const send = standardWebhook({ url, secret, httpClient: async () => ({ status: status as number, headers: {}, body: '' }) })
    await expect(send(event)).rejects.toThrow('The receiver of the webhook answered')
  })

  test('a client that throws at once has not delivered', async () => {
    const httpClient = () => {
      throw new Error('no network')
    }
    await expect(standardWebhook({ url, secret, httpClient })(event)).rejects.toThrow('no network')
  })

  test.each([200, 500])('a body without end is not read: the status %i decides', async (status) => {
    let sent = 0
    const server = createServer((_req, res) => {
      res.writeHead(status)
      const timer = setInterval(() => {
        sent += 1
        res.write(Buffer.alloc(65_536))
      }, 1)
      res.on('close', () => clearInterval(timer))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const outcome = await Promise.resolve(standardWebhook({ url: `http://127.0.0.1:${port}/`, secret })(event)).then(
      () => 'delivered',
      (error: Error) => error.message,
    )
    server.closeAllConnections()
    server.close()
    expect(outcome).toBe(status === 200 ? 'delivered' : 'The receiver of the webhook answered 500.')
    expect(sent).toBeLessThan(100)
  })

  test('the client gets the address as it was read, and not as it was written', async () => {
    const calls: unknown[] = []
    const httpClient = async (address: string) => {
      calls.push(address)
      return { status: 204, headers: {}, body: '' }
    }
    await standardWebhook({ url: ' https:hooks.EXAMPLE.com\\x/../y', secret, httpClient })(event)
    expect(calls).toEqual(['https://hooks.example.com/y'])
  })

  test('an httpClient that is no function is refused when it is made', () => {
    expect(() => standardWebhook({ url, secret, httpClient: {} as never })).toThrow('httpClient must be a function')
  })
})

describe('the options of a webhook', () => {
  const secret = secretOf(randomBytes(32))

  test.each([
    'http://hooks.example.com/x',
    'ftp://localhost/x',
    'https://user:password@hooks.example.com/x',
    'http://localhost.example.com/x',
    'hooks.example.com',
    '',
    undefined,
  ])('refuse the address %s', (url) => {
    expect(() => standardWebhook({ url: url as string, secret })).toThrow('url must be an https address')
  })

  test.each(['https://hooks.example.com/x', 'http://localhost:3000/x', 'http://127.0.0.1/x', 'http://[::1]:8080/x'])(
    'take the address %s',
    (url) => {
      expect(standardWebhook({ url, secret })).toBeTypeOf('function')
    },
  )

  test.each([
    secretOf(randomBytes(23)),
    secretOf(randomBytes(65)),
    randomBytes(32).toString('base64'),
    `whsec_${'!'.repeat(44)}`,
    'whsec_',
    '',
    undefined,
  ])('refuse a secret that is not whsec_ and 24 to 64 bytes in base64', (wrong) => {
    const url = 'https://hooks.example.com/x'
    expect(() => standardWebhook({ url, secret: wrong as string })).toThrow('secret must be whsec_')
    expect(() => standardWebhook({ url, secret: [secret, wrong as string] })).toThrow('secret must be whsec_')
  })

  test('refuse an empty list of secrets', () => {
    expect(() => standardWebhook({ url: 'https://hooks.example.com/x', secret: [] })).toThrow('at least one secret')
  })
})
