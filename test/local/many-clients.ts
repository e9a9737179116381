import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import supertest from 'supertest'
import { afterEach } from 'vitest'
import { type Mounted, type MountOptions, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'

export const password = 'a quiet harbour in winter'
export const wrongPassword = 'a loud harbour in summer'

export interface CountingHasher extends ReturnType<typeof fastHasher> {
  /** Passwords looked at, against whatever hash. */
  verified: number
}

export function countingHasher(): CountingHasher {
  const inner = fastHasher()
  const hasher: CountingHasher = {
    ...inner,
    verified: 0,
    verify(hash, password) {
      hasher.verified += 1
      return inner.verify(hash, password)
    },
  }
  return hasher
}

export interface ManyClients extends Mounted {
  hasher: CountingHasher
  /** Where it listens. */
  address(): { port: number }
  /** As the client with this address. */
  post(path: string, body: object, from?: string, headers?: Record<string, string>): Promise<supertest.Response>
  logIn(email: string, password: string, from?: string): Promise<supertest.Response>
  /** An active account. */
  signUp(email: string): Promise<{ userId: string; accessToken: string }>
}

type Given = Omit<MountOptions, 'knex'> & { trustsProxy?: boolean; knex?: MountOptions['knex'] }

/** Hosts behind one proxy, so that a test can be any client; accounts are born active, and the routes' own budget is off. */
export function manyClients(): (given?: Given) => Promise<ManyClients> {
  const opened: { close(): Promise<unknown> | unknown }[] = []
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close()
  })

  return async ({ trustsProxy = true, settings, options, ...more } = {}) => {
    const database = (await databases())[0]
    if (!database) throw new Error('no database answers')
    const own: OpenDatabase = await database.open({ memory: true })
    const hasher = countingHasher()
    const throttle = { routes: false, ...options?.throttle } as const
    const mounted = await mount({
      knex: own.knex,
      settings: { autoActivate: true, ...settings },
      options: { passwordHasher: hasher, ...options, throttle },
      ...more,
    })
    if (trustsProxy) mounted.app.set('trust proxy', 1)
    const server = createServer(mounted.app).listen(0, '127.0.0.1')
    await once(server, 'listening')
    opened.push(own, mounted, { close: () => closed(server) })
    const post: ManyClients['post'] = async (path, body, from = '192.0.2.1', headers = {}) =>
      supertest(server)
        .post(path)
        .set({ 'X-Forwarded-For': from, ...headers })
        .send(body)
    return {
      ...mounted,
      hasher,
      address: () => server.address() as AddressInfo, // it listens on a port
      post,
      logIn: (email, password, from) => post('/auth/login', { email, password }, from),
      async signUp(email) {
        const { body } = await post('/auth/signup', { email, password }, '198.51.100.99')
        return { userId: String(body.user_id), accessToken: String(body.access_token) }
      },
    }
  }
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

/** 192.0.2.1 is the first. */
export function client(number: number): string {
  return `192.0.${2 + Math.floor(number / 250)}.${1 + (number % 250)}`
}

export function times<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => make(index)))
}

export async function inTurn<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  const made: T[] = []
  for (let index = 0; index < count; index++) made.push(await make(index))
  return made
}

export function statuses(responses: { status: number }[]): number[] {
  return responses.map(({ status }) => status)
}
