import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Listener {
  readonly server: Server
  readonly port: number
  close(): Promise<void>
}

/**
 * Listens on a port of loopback before the app exists, because the app needs its own address for its configuration. Port 0: any free port.
 */
export async function listen(port: number): Promise<Listener> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    server,
    // The address of a TCP server is an AddressInfo. The other two types are for pipes, and for a server that does not listen.
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
