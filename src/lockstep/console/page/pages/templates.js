// What a new object of a kind begins as.
const own = 'lockstep.dev/v1alpha1';

export const TEMPLATES = {
  notebooks: (space) => `apiVersion: kubeflow.org/v1
kind: Notebook
metadata:
  name: my-notebook
  namespace: ${space}
spec:
  template:
    spec:
      containers:
        - name: my-notebook
          image: kubeflownotebookswg/jupyter-scipy:v1.10.0
          resources:
            limits: {cpu: 4, memory: 16Gi}
`,
  environments: (space) => `apiVersion: ${own}
kind: Environment
metadata:
  name: gpu
  namespace: ${space}
spec:
  resources: {nvidia.com/gpu: 1}
  idle: {after: 30m, action: Park}
`,
  datasets: (space) => `apiVersion: data.fluid.io/v1alpha1
kind: Dataset
metadata:
  name: pictures
  namespace: ${space}
spec:
  mounts:
    - {mountPoint: "s3://bucket/pictures", name: pictures, path: /}
`,
  services: (space) => `apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: my-model
  namespace: ${space}
spec:
  predictor:
    minReplicas: 0
    model:
      modelFormat: {name: sklearn}
      storageUri: s3://bucket/model
`,
  pipelines: (space) => `apiVersion: ${own}
kind: PipelineRun
metadata:
  generateName: run-
  namespace: ${space}
spec:
  entry: main
  templates:
    main:
      graph:
        tasks:
          - {name: prepare, template: say, arguments: {word: hello}}
    say:
      inputs: [word]
      pod:
        template:
          spec:
            containers:
              - {name: main, image: python, command: [echo, "\${{ inputs.word }}"]}
`,
  models: (space) => `apiVersion: ${own}
kind: ModelVersion
metadata:
  name: my-model-1
  namespace: ${space}
spec:
  model: my-model
  version: "1"
  uri: s3://bucket/models/my-model/1
`,
  pools: () => `apiVersion: ${own}
kind: NodePool
metadata:
  name: gpu
spec:
  min: 0
  max: 4
  template: {resources: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 8}}
  provider: {simulated: {}}
`,
  teams: () => `apiVersion: ${own}
kind: Team
metadata:
  name: vision
spec:
  members:
    - {name: ana, role: Admin}
    - {name: ben}
  queue:
    guaranteed: {nvidia.com/gpu: 16}
    limit: {nvidia.com/gpu: 32}
`,
  prices: () => `apiVersion: ${own}
kind: PriceList
metadata:
  name: cloud
spec:
  currency: EUR
  prices:
    - gpuHour: 2.50
`,
  queues: () => `apiVersion: ${own}
kind: Queue
metadata:
  name: research
spec:
  guaranteed: {nvidia.com/gpu: 16}
  weight: 1
`,
};
