// SPDX-License-Identifier: Apache-2.0
// The search of the site runs in a worker, which browsers do not start for a page that was opened as a file. There, this
// runs its script in a hidden frame instead; mkdocs.yml names it so that the plugin `offline` loads none from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentDocument;
      inside.open();
      inside.write("<!doctype html><title>Search</title>");
      inside.close();
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = (...urls) =>
        urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
      this.started = this.load(new URL(url, document.baseURI).href);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.scope.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`cannot load ${url}`));
        this.scope.document.body.append(script);
      });
    }

    postMessage(data) {
      this.started.then(() => this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })));
    }
  };
}
