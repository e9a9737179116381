import { parseArgs } from 'node:util'
import { type Demo, startDemo } from './start-demo'

const defaultPort = 3000

/** Starts the demo: `npm run demo [-- --port 8080]`. Port 0: any free port. */
async function main() {
  const port = requestedPort()
  const demo = await (port === undefined ? startOnDefaultPort() : startDemo({ port }))
  console.log(greeting(demo))
  process.once('SIGINT', () => void stop(demo))
  process.once('SIGTERM', () => void stop(demo))
}

function greeting({ url, providerUrl, octoUrl }: Demo): string {
  return `
  Doorward demo   ${url}
  Outbox          ${url}/outbox   (every mail it sends)
  Acme ID         ${providerUrl}   (an OpenID provider)
  Octo ID         ${octoUrl}   (one in the manner of GitHub)

  Open the first address. Sign up with any email address, then open the link in the outbox; or continue with Acme ID.
  Ctrl+C stops them all.
`
}

function requestedPort(): number | undefined {
  const { values } = parseArgs({ options: { port: { type: 'string' } } })
  const text = values.port ?? process.env.PORT
  if (text === undefined || text === '') return undefined
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`"${text}" is not a port: give a number from 0 to 65535.`)
  return port
}

/**
 * Starts the demo on the default port. If that port is in use, starts the demo on any free port, because nobody asked for a certain port.
 */
async function startOnDefaultPort(): Promise<Demo> {
  try {
    return await startDemo({ port: defaultPort })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return startDemo()
    throw error
  }
}

async function stop(demo: Demo) {
  await demo.close()
  process.exit(0)
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
})
