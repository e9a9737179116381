import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Listener {
  readonly server: Server
  readonly port: number
  close(): Promise<void>
}

/** Takes a port on loopback before there is an app, because the app's own address is part of its configuration. 0: any free one. */
export async function listen(port: number): Promise<Listener> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    server,
    // A TCP server's address is an AddressInfo; the other two cases of the type are pipes and servers that do not listen.
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
