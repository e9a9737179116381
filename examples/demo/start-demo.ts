import { randomBytes } from 'node:crypto'
import { createAcmeId } from './acme-id/create-acme-id'
import { authPrefix, createHostApp } from './create-host-app'
import { listen } from './listen'
import { createOctoId } from './octo-id/create-octo-id'

export interface DemoOptions {
  /** The port of the app. 0: any free port. */
  port?: number
  /** The port of Acme ID. 0: any free port. */
  providerPort?: number
  /** The port of Octo ID. 0: any free port. */
  octoPort?: number
  /** An SQLite file. Default: a database in memory, which is lost when the demo ends. */
  databaseFile?: string
  /** The clock of the app. */
  now?: () => Date
}

export interface Demo {
  /** The URL to open in the browser. */
  readonly url: string
  /** Acme ID's address, which is also its issuer identifier. */
  readonly providerUrl: string
  /** Octo ID's address. */
  readonly octoUrl: string
  close(): Promise<void>
}

/** Starts two identity providers and the app that uses them, each on its own port of loopback. */
export async function startDemo(options: DemoOptions = {}): Promise<Demo> {
  const { port = 0, providerPort = 0, octoPort = 0, databaseFile = ':memory:', now } = options
  const closers: Array<() => Promise<void>> = []
  const close = async () => {
    for (const closeNext of closers.splice(0).reverse()) await closeNext()
  }

  try {
    const acmeId = await listen(providerPort)
    closers.push(acmeId.close)
    const octoId = await listen(octoPort)
    closers.push(octoId.close)
    const host = await listen(port)
    closers.push(host.close)

    // The app uses one name of this machine, and the providers use another. So the browser treats them as two sites, like a real app and
    // its provider.
    const providerUrl = `http://127.0.0.1:${acmeId.port}`
    const url = `http://localhost:${host.port}`
    const octoUrl = `http://127.0.0.1:${octoId.port}`
    const client = registeredAt('acme', url)
    const octoClient = registeredAt('octo', url)

    acmeId.server.on('request', createAcmeId(providerUrl, client))
    octoId.server.on('request', createOctoId(octoClient))
    const making = createHostApp({ url, issuer: providerUrl, client, octo: { url: octoUrl, client: octoClient }, databaseFile, now })
    // The server listens already, so a request can arrive before the app exists. Such a request waits for the app.
    host.server.on('request', (req, res) => {
      making.then(
        ({ app }) => app(req, res),
        () => res.destroy(),
      )
    })
    closers.push((await making).close)
    return { url, providerUrl, octoUrl, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Returns the registration of the app at a provider. */
function registeredAt(key: string, url: string) {
  return {
    clientId: 'doorward-demo',
    clientSecret: randomBytes(32).toString('base64url'),
    redirectUri: `${url}${authPrefix}/oauth/${key}/callback`,
  }
}
