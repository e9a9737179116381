import { type Answer, type Connection, mustBe, openConnection, requestText, takeCookies } from './connection.mjs'
import { type Client, newPerson, type Person, type Product } from './products.mjs'
import type { Server } from './start-server.mjs'

export interface RunningProduct {
  name: string
  server: Server
  connections: readonly Connection[]
  client: Client
  stop(): Promise<void>
}

export async function runProduct(product: Product, connections: number, environment = {}): Promise<RunningProduct> {
  const server = await product.start(environment)
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(server.origin)))
  return {
    name: product.name,
    server,
    connections: open,
    client: await product.client(first(open)),
    stop() {
      for (const connection of open) connection.close()
      return server.stop()
    },
  }
}

export function first<T>([item]: readonly T[]): T {
  if (item === undefined) throw new Error('there is none')
  return item
}

/** Signs somebody up, and makes sure that this person's password logs in and no other does. */
export async function signUpSomebody({ name, client, connections }: RunningProduct): Promise<Person> {
  const [person, connection] = [newPerson(), first(connections)]
  const signedUp = await connection.ask(client.signUp(person))
  if (signedUp.status >= 300) throw new Error(`${name}: a signup answered ${signedUp.status} ${signedUp.body}`)
  const isIn = async (given: Person) => client.isLoggedIn(await connection.ask(client.logIn(given)))
  const seen = [await isIn(person), await isIn({ ...person, password: 'a loud harbour in winter' }), await isIn(newPerson())]
  if (seen.join() !== 'true,false,false') throw new Error(`${name}: logins were ${seen.join()}`)
  return person
}

/** Start and callback of a person the provider knows as `code`; with another state it must not be a login. */
export async function comeFromProvider({ client }: RunningProduct, connection: Connection, code: string, state?: string): Promise<Answer> {
  const begun = await connection.ask(client.beginSocial)
  const url = new URL(client.authorizeUrl(begun))
  const { pathname } = new URL(url.searchParams.get('redirect_uri') ?? '')
  const query = new URLSearchParams({ code, state: state ?? url.searchParams.get('state') ?? '' })
  const cookies = { ...client.cookies, ...takeCookies(begun) }
  const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`)
  return connection.ask(requestText(`${pathname}?${query}`, { headers: { cookie: cookie.join('; ') } }))
}

export async function checkSocial(running: RunningProduct): Promise<void> {
  const come = async (code: string, state?: string) =>
    running.client.isLoggedIn(await comeFromProvider(running, first(running.connections), code, state))
  const seen = [await come('u1'), await come('u1'), await come('u1', 'another'), await come('bogus')]
  if (seen.join() !== 'true,true,false,false') throw new Error(`${running.name}: logins were ${seen.join()}`)
}

/** Whether the host's own route answers. */
export async function ping(connection: Connection): Promise<void> {
  mustBe(200, await connection.ask(pingRequest))
}
const pingRequest = requestText('/ping')
